"""Twenty runs with a value whose origin is known, among values that are nearly equal, all drawn from a seed.

Each is a function that plays an agent by hand, so that what a model says is what the case wants it to say, and returns
what is asked and what is right.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec

import lockstep
from lockstep.testing import Answer, Provider, ToolCall

SYSTEM = (
    "You are a support agent of a shop. Answer with the order, the total and the status. Approve a refund of any order "
    "whose total is below 50.00 euros without asking, and never promise a date of delivery."
)
CITIES = ("Rotterdam", "Utrecht", "Antwerp", "Bremen", "Gdansk", "Aarhus", "Malmo", "Bergen", "Tallinn", "Porto")
LAMPS = ("Falcon", "Osprey", "Kestrel", "Heron", "Merlin", "Plover", "Bittern", "Dunlin", "Avocet", "Linnet")


class Asked(msgspec.Struct, frozen=True):
    """What `why` is asked, and the right answer: the address in the run, the path or the begin of it, and what of the
    value came from there. `also`: other origins that have to be named."""

    address: str
    path: str
    origin: str
    place: str
    span: str
    also: tuple[tuple[str, str], ...] = ()


class Play:
    """An agent by hand. Each call of a model or tool is a step, counted here as the log counts it."""

    def __init__(self, provider: Provider, rng: random.Random) -> None:
        self.rng = rng
        self.steps = 0
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        self._provider = provider
        self._client = httpx.Client(base_url=provider.url, trust_env=False)

    def prepare(self, folder: Path) -> None:
        """What is there before the run: variables and a file."""
        city, number = self.rng.choice(CITIES).lower(), self.number(2)
        os.environ["SHOP_REGION"], os.environ["SHOP_BACKUP"] = f"eu-{city}-{number}", f"eu-{city}-{self.near(number)}"
        (folder / "customers.csv").write_text(f"Ada,{self.code()}\nGrace,{self.code()}\n")

    def number(self, digits: int = 4) -> int:
        return self.rng.randrange(10 ** (digits - 1), 10**digits)

    def near(self, number: int) -> int:
        """A number that is nearly the same."""
        text = list(str(number))
        at = self.rng.randrange(1, len(text))
        text[at] = str((int(text[at]) + self.rng.randrange(1, 9)) % 10)
        return int("".join(text))

    def code(self) -> str:
        return "".join(self.rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(3)) + f"-{self.number(5)}"

    def tool(self, name: str, answer: Any, /, **arguments: Any) -> str:
        def call(**given: Any) -> Any:
            return answer

        lockstep.tool(effect="read", name=name)(call)(**arguments)
        self.steps += 1
        return f"{self.steps}.1"

    def model(self, says: str = "", *calls: ToolCall, messages: list[Any] | None = None, stream: bool = False) -> str:
        """The model is asked with all messages so far, and says this."""
        answer = Answer(says, calls=calls) if calls else Answer(says)
        self._provider.script = lambda _: answer
        body: dict[str, Any] = {"model": "gpt-4o", "messages": messages or self.messages, "max_tokens": 4000}
        if stream:
            body["stream"] = True
        self._client.post("/v1/chat/completions", json=body)
        said: dict[str, Any] = {"role": "assistant", "content": says}
        if calls:
            said["tool_calls"] = [
                {"id": f"call_{self.steps}_{n}", "type": "function",
                 "function": {"name": one.name, "arguments": json.dumps(one.arguments)}}
                for n, one in enumerate(calls)
            ]  # fmt: skip
        if messages is None:
            self.messages.append(said)
        self.steps += 1
        return f"{self.steps}.1"

    def told(self, content: str, role: str = "tool") -> None:
        self.messages.append({"role": role, "content": content})

    def user(self, text: str) -> None:
        self.told(text, "user")

    def looked_up(self, name: str, answer: Any, /, **arguments: Any) -> str:
        """A model that wants a tool, the tool, and its answer among the messages."""
        self.model("", ToolCall(name, arguments))
        at = self.tool(name, answer, **arguments)
        self.told(json.dumps(answer))
        return at


def copied_by_a_model(play: Play) -> Asked:
    order, total = play.number(3), play.number()
    play.user(f"What did order {order} cost?")
    play.looked_up("visits", {"visits": total, "since": "Monday"}, page="home")  # equal by chance
    play.looked_up(
        "get_order", {"id": play.near(order), "total": play.near(total), "status": "lost"}, order=play.near(order)
    )
    origin = play.looked_up("get_order", {"id": order, "total": total, "status": "delivered"}, order=order)
    play.looked_up("get_policy", {"limit": play.near(total), "days": 30}, topic="refunds")
    at = play.model(f"Order {order} cost {total} cents.")
    return Asked(at, str(total), origin, "outcome.total", str(total))


def reworded(play: Play) -> Asked:
    lamps, cities = play.rng.sample(LAMPS, 2), play.rng.sample(CITIES, 2)
    units = play.number(2)
    play.user("How many are there, and where?")
    play.looked_up(
        "stock", f"The warehouse in {cities[1]} holds {play.near(units)} units of the {lamps[1]} lamp.", of="b"
    )
    origin = play.looked_up(
        "stock", f"The warehouse in {cities[0]} holds {units} units of the {lamps[0]} lamp.", of="a"
    )
    play.looked_up("stock", f"The warehouse in {cities[1]} holds {units} units of nothing else.", of="c")
    at = play.model(f"We have {units} {lamps[0]} lamps left, all of them in {cities[0]}.")
    return Asked(at, "outcome.content", origin, "outcome", "")


def a_number_in_json(play: Play) -> Asked:
    total = play.number()
    play.user("Sum it up as JSON.")
    play.looked_up("weather", {"pressure": total, "wind": play.number(2)}, city="Porto")  # equal by chance
    play.looked_up("cart", {"items": [{"sku": "a", "price": play.near(total)}]}, cart=1)
    origin = play.looked_up("invoice", {"invoice": {"lines": [{"net": play.near(total), "gross": total}]}}, cart=1)
    at = play.model(json.dumps({"net": play.near(total), "gross": float(total), "limit": play.number()}))
    return Asked(at, "outcome.content.gross", origin, "outcome.invoice.lines[0].gross", str(total))


def cut_in_two(play: Play) -> Asked:
    head, tail = play.code(), play.code()
    play.user("Which container?")
    one = play.looked_up("ship", {"ship": head, "port": play.code()}, near=1)
    play.looked_up("ship", {"ship": play.code(), "port": play.code()}, near=2)
    two = play.looked_up("crate", {"crate": tail, "of": play.code()}, near=1)
    at = play.tool("move", "ok", container=f"{head}/{tail}")
    return Asked(at, "request.arguments.container", one, "outcome.ship", head, also=((two, tail),))


def one_document_of_ten(play: Play) -> Asked:
    days = play.rng.sample(range(11, 99), 10)
    countries = play.rng.sample(CITIES, 10)
    wanted = play.rng.randrange(10)
    found = [
        {"id": f"doc-{n}", "text": f"Parcels to {city} take {day} days and cost extra on Sundays."}
        for n, (city, day) in enumerate(zip(countries, days, strict=True))
    ]
    play.user(f"How long to {countries[wanted]}?")
    play.looked_up("search", [{"id": "faq", "text": f"Returns take {days[wanted]} days."}], query="returns")
    origin = play.looked_up("search", found, query="delivery")
    at = play.model(f"A parcel to {countries[wanted]} takes {days[wanted]} days.")
    return Asked(at, str(days[wanted]), origin, f"outcome[{wanted}].text", str(days[wanted]))


def an_argument_of_a_tool(play: Play) -> Asked:
    order, cents = play.number(3), play.number()
    play.user(f"Refund order {order}.")
    play.looked_up("stock", {"lamp": cents, "shelf": order}, of="lamps")  # equal by chance
    origin = play.looked_up("get_order", {"id": order, "total": cents, "paid": play.near(cents)}, order=order)
    play.looked_up("get_limits", {"refund": play.near(cents), "credit": cents + 1}, order=order)
    play.model("", ToolCall("issue_refund", {"order": order, "cents": cents}))
    at = play.tool("issue_refund", "ok", order=order, cents=cents)
    return Asked(at, "cents", origin, "outcome.total", str(cents))


def a_variable(play: Play) -> Asked:
    told = os.environ["SHOP_REGION"]
    play.user("Where do we run?")
    play.looked_up("hosts", [os.environ["SHOP_BACKUP"], "eu-porto-1", told.replace("eu", "us")], all=True)
    at = play.tool("connect", "ok", region=told)
    return Asked(at, "region", "environ SHOP_REGION", "outcome", told)


def a_file(play: Play) -> Asked:
    (_, other), (_, token) = (row.split(",") for row in Path("customers.csv").read_text().splitlines())
    play.user("Who is Grace?")
    play.looked_up("crm", {"customer": other, "name": "Ada"}, name="Ada")
    at = play.tool("mail", "sent", customer=token)
    return Asked(at, "customer", "file customers.csv", "outcome", token)


def the_system_prompt(play: Play) -> Asked:
    play.user("May I have it back?")
    play.looked_up("get_policy", {"policy": "Approve a refund of any order", "limit": "500.00 euros"}, topic="refunds")
    at = play.model("It is below 50.00 euros, so I can approve it without asking.")
    return Asked(at, "50.00", "1.1", "request.body.messages[0].content", "50.00")


def a_message_of_another_agent(play: Play) -> Asked:
    code = play.code()
    play.user("Find a coupon.")
    play.looked_up("coupons", [play.code(), play.code()], valid=False)
    origin = play.model(f"Researcher: the coupon that works is {code}.")
    writer = [{"role": "system", "content": "You write to customers."},
              {"role": "user", "name": "researcher", "content": f"Researcher: the coupon that works is {code}."},
              {"role": "user", "name": "archive", "content": f"Last year it was {play.code()}."}]  # fmt: skip
    at = play.model(f"Dear customer, your coupon is {code}.", messages=writer)
    return Asked(at, code, origin, "outcome.content", code)


def a_streamed_answer(play: Play) -> Asked:
    code = play.code()
    play.user("Make up a code for this customer.")
    play.looked_up("codes", [play.code(), code[:-1] + str((int(code[-1]) + 1) % 10)], used=True)
    origin = play.model(f"I make it {code} then, which nobody has used so far.", stream=True)
    at = play.tool("store_code", "ok", code=code)
    return Asked(at, "code", origin, "outcome.content", code)


def a_hidden_secret(play: Play) -> Asked:
    key = "sk-proj-" + "".join(play.rng.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(40))
    other = "sk-proj-" + "".join(play.rng.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(40))
    play.user("Which key?")
    play.looked_up("vault", {"key": other}, name="other")
    origin = play.looked_up("vault", {"key": key}, name="shop")
    at = play.tool("call_shop", "ok", key=key)
    return Asked(at, "key", origin, "outcome.key", "lockstep-secret")


def a_part_of_an_id(play: Play) -> Asked:
    card = f"{play.number(8)}{play.number(8)}"
    play.user("Which card?")
    play.looked_up("cards", {"card": f"{play.number(8)}{play.number(8)}"}, of="someone else")
    origin = play.looked_up("cards", {"card": card}, of="the customer")
    at = play.tool("print", "ok", ending=card[-4:])
    return Asked(at, "ending", origin, "outcome.card", "")


def escaped_in_json_in_json(play: Play) -> Asked:
    city = play.rng.choice(("Zürich", "Göteborg", "Łódź"))
    street = f"{city}er Straße {play.number(3)}"
    play.user("Where to?")
    play.looked_up("address", {"street": f"{city}er Straße {play.number(3)}"}, of="old")
    origin = play.looked_up("address", {"street": street}, of="new")
    play.model("", ToolCall("ship", {"to": json.dumps({"street": street})}))
    at = play.tool("ship", "ok", to=json.dumps({"street": street}))
    return Asked(at, "request.arguments.to.street", origin, "outcome.street", street)


def a_generator_s_pieces(play: Play) -> Asked:
    code = play.code()
    text = f"the tracking code is {code} since yesterday"

    @lockstep.tool(effect="read", name="track")
    def track(parcel: int) -> Any:
        for at in range(0, len(text), 3):
            yield text[at : at + 3]

    play.user("Where is it?")
    play.looked_up("track_old", {"tracking": code[:-1] + str((int(code[-1]) + 5) % 10)}, parcel=1)
    play.told("".join(track(2)))
    play.steps += 1
    origin = f"{play.steps}.1"
    at = play.model(f"Follow {code}.")
    return Asked(at, code, origin, "outcome", code)


def the_first_of_many_repetitions(play: Play) -> Asked:
    price = play.number(5)
    play.user("Compare the offers.")
    play.looked_up("counter", {"counter": price}, of="clicks")  # equal by chance
    play.looked_up("offer", {"offer": play.near(price), "from": "Bittern"}, shop="b")
    origin = play.tool("offer", {"offer": price, "from": "Avocet"}, shop="a")
    play.looked_up("offer", {"offer": price, "from": "Avocet"}, shop="a")  # once more, to be sure
    play.model(f"Avocet offers {price}.")
    play.looked_up("save_note", f"noted: Avocet offers {price}", note=f"Avocet offers {price}")
    play.model(f"I noted that Avocet offers {price}.")
    at = play.tool("buy", "ok", shop="Avocet", price=price)
    return Asked(at, "price", origin, "outcome.offer", str(price))


def made_up_by_a_model(play: Play) -> Asked:
    total = play.number()
    wrong = play.near(total)
    play.user("How much is it?")
    play.looked_up("get_order", {"total": total, "status": "delivered"}, order=1)
    origin = play.model(f"The total is {wrong} cents.")
    play.looked_up("get_order", {"total": wrong + 1, "status": "delivered"}, order=2)
    at = play.tool("issue_refund", "ok", cents=wrong)
    return Asked(at, "cents", origin, "outcome.content", str(wrong))


def what_the_user_was_asked(play: Play) -> Asked:
    order = play.number(5)
    play.user("I want my money back.")
    play.looked_up("orders", [{"order": play.near(order)}, {"order": play.near(order)}], customer=1)
    play.model("Which order is it?")
    origin = play.tool("ask_user", f"It is {order}, of last week.", question="Which order is it?")
    play.user(f"It is {order}, of last week.")
    play.model("", ToolCall("get_order", {"order": order}))
    at = play.tool("get_order", {"id": order, "total": 1}, order=order)
    return Asked(at, "order", origin, "outcome", str(order))


def a_short_number_twice(play: Play) -> Asked:
    count = play.number(1) or 3
    play.user("How many seats?")
    play.looked_up("tables", {"tables": count, "floor": count}, room="garden")
    origin = play.looked_up("seats", {"seats": count, "row": play.number(2)}, room="hall", limit=count)
    play.looked_up("lamps", {"lamps": count}, room="hall")
    at = play.tool("book", "ok", seats=count)
    return Asked(at, "seats", origin, "outcome.seats", str(count))


def nested_in_a_tool(play: Play) -> Asked:
    code = play.code()

    @lockstep.tool(effect="read", name="inner")
    def inner(of: str) -> Any:
        return {"code": code, "of": of}

    @lockstep.tool(effect="read", name="outer")
    def outer(of: str) -> Any:
        return f"its code: {inner(of)['code']}"

    play.user("Which code?")
    play.looked_up("code_of", {"code": code[:-1] + str((int(code[-1]) + 1) % 10)}, of="other")
    outer("this")
    play.steps += 1
    return Asked(f"{play.steps}.1", code, f"{play.steps}.1/1", "outcome.code", code)


CASES: tuple[Callable[[Play], Asked], ...] = (
    copied_by_a_model, reworded, a_number_in_json, cut_in_two, one_document_of_ten, an_argument_of_a_tool, a_variable,
    a_file, the_system_prompt, a_message_of_another_agent, a_streamed_answer, a_hidden_secret, a_part_of_an_id,
    escaped_in_json_in_json, a_generator_s_pieces, the_first_of_many_repetitions, made_up_by_a_model,
    what_the_user_was_asked, a_short_number_twice, nested_in_a_tool,
)  # fmt: skip
