"""Two async tasks, a listener that prints, and several inputs at once."""

import asyncio

from crewai import Agent, Crew, Task
from crewai.events import TaskCompletedEvent, crewai_event_bus

heard = []


@crewai_event_bus.on(TaskCompletedEvent)
def on_task(source, event):
    heard.append(event.task.name if event.task else None)


def agent(role):
    return Agent(role=role, goal="Do it", backstory="Able.", llm="openai/gpt-4o")


def make():
    one = Task(
        name="one", description="Do one of {topic}.", expected_output="One.", agent=agent("One"), async_execution=True
    )
    two = Task(
        name="two", description="Do two of {topic}.", expected_output="Two.", agent=agent("Two"), async_execution=True
    )
    three = Task(name="three", description="Sum up.", expected_output="Sum.", agent=agent("Three"), context=[one, two])
    return Crew(name="sums", agents=[one.agent, two.agent, three.agent], tasks=[one, two, three])


if __name__ == "__main__":
    print(make().kickoff(inputs={"topic": "a"}).raw)
    outs = asyncio.run(make().kickoff_for_each_async([{"topic": "b"}, {"topic": "c"}]))
    print([out.raw for out in outs])
    print(sorted(heard))
