from crewai import LLM
from crewai.events import LLMCallCompletedEvent, crewai_event_bus
from crewai.flow.flow import Flow, listen, router, start
from crewai.flow.persistence import persist
from pydantic import BaseModel

heard = []


@crewai_event_bus.on(LLMCallCompletedEvent)
def on_answer(source, event):
    heard.append(event.response)


class State(BaseModel):
    n: int = 0
    said: str = ""


@persist()
class Counting(Flow[State]):
    @start()
    def first(self):
        self.state.n += 1
        return LLM("openai/gpt-4o").call("Say something.")

    @router(first)
    def which(self, said):
        self.state.said = said
        return "big"

    @listen("big")
    def grow(self):
        self.state.n += 10
        return f"{self.state.n} {self.state.said}"


if __name__ == "__main__":
    flow = Counting()
    print(flow.kickoff())
    print(flow.state.n, heard)
