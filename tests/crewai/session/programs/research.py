"""Two agents, three tasks and a tool."""

from crewai import Agent, Crew, Process, Task
from crewai.tools import BaseTool


class Look(BaseTool):
    name: str = "look"
    description: str = "Looks something up."

    def _run(self, what: str) -> str:
        import random

        return f"{what}: {random.random()}"


researcher = Agent(role="Researcher", goal="Find out", backstory="Curious.", tools=[Look()], llm="openai/gpt-4o")
writer = Agent(role="Writer", goal="Write", backstory="Terse.", llm="openai/gpt-4o")
find = Task(name="find", description="Find something about {topic}.", expected_output="A fact.", agent=researcher)
outline = Task(name="outline", description="Make an outline.", expected_output="An outline.", agent=writer)
write = Task(name="write", description="Write it.", expected_output="A text.", agent=writer)
crew = Crew(name="research", agents=[researcher, writer], tasks=[find, outline, write], process=Process.sequential)

if __name__ == "__main__":
    out = crew.kickoff(inputs={"topic": "tea"})
    print(out.raw)
    print(out.token_usage)
    for task in out.tasks_output:
        print(task.raw)
