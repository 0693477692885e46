"""An agent, and a listener that is told what its model said."""

from crewai import Agent
from crewai.events import LLMCallCompletedEvent, crewai_event_bus

heard = []


@crewai_event_bus.on(LLMCallCompletedEvent)
def on_answer(source, event):
    heard.append(event.response)


if __name__ == "__main__":
    agent = Agent(role="Thinker", goal="Think", backstory="Able.", llm="openai/gpt-4o")
    print(agent.kickoff("What about tea?").raw)
    crewai_event_bus.flush()
    print(heard)
