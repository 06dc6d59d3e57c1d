"""What one model at one endpoint turned out not to accept; learned from its answers and shared by all who ask it.

Nothing is guessed from names. An endpoint that refuses a field says which (``error.param``); the same request then goes
out without it, once and for all, and the refusal is a fact for the run file. Structured answers come down a ladder: a
forced tool call, a JSON schema, JSON mode, the schema in the prompt. A form that the endpoint takes and does not heed
is given up as well, unless it ever worked; so is a form or a role that it breaks on (``evaluatorq.llm.doubts``).
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum

from evaluatorq.llm.doubts import FORM, Doubts, Trial
from evaluatorq.llm.errors import ApiError

_REFUSING_CODES = {
    "unsupported_parameter", "unsupported_value", "unsupported_field", "unknown_parameter", "unrecognized_parameter",
    "invalid_parameter", "invalid_request_error", "invalid_request", "bad_request",
}  # fmt: skip
_OTHER_NAMES = {"max_tokens": "max_completion_tokens"}
_ROLES = ("system", "developer", "user")
_LINE_OF = {role: b'{"role":"%s"' % role.encode() for role in _ROLES[:2]}
HEEDLESS_ANSWERS = 2
"""So many answers without an object, and none with one, show that a form of asking is not heeded."""


class AnswerForm(IntEnum):
    """How a structured answer is asked for; the higher, the more the endpoint sees to."""

    PROMPT = 0
    JSON_OBJECT = 1
    JSON_SCHEMA = 2
    TOOL = 3

    @property
    def below(self) -> AnswerForm:
        """The next step down the ladder."""
        return AnswerForm(max(0, self - 1))


_FORM_NAMES = {
    AnswerForm.TOOL: "tool_choice",
    AnswerForm.JSON_SCHEMA: "response_format json_schema",
    AnswerForm.JSON_OBJECT: "response_format json_object",
}
_FORM_FIELDS = {
    AnswerForm.TOOL: {"tools", "tool_choice", "functions", "function_call"},
    AnswerForm.JSON_SCHEMA: {"response_format", "json_schema"},
    AnswerForm.JSON_OBJECT: {"response_format", "json_object"},
    AnswerForm.PROMPT: set[str](),
}


class Abilities:
    """The refusals of one (endpoint, model). ``version`` changes whenever a request would now look different."""

    def __init__(self) -> None:
        self.version = 0
        self.form = AnswerForm.TOOL
        self.form_works = False
        self.refused_in_every_form = False
        self.roles: dict[str, str] = {}
        self._doubts = Doubts()
        self._broke: list[str] = []
        self._refused_roles: set[str] = set()
        self._heedless = 0
        self._fields: dict[str, str | None] = {}

    @property
    def form_settled(self) -> bool:
        """Another form need not be tried when a refusal does not name what it refuses."""
        return self.form_works or self.refused_in_every_form

    @property
    def dropped(self) -> list[str]:
        """What was refused, with what is sent instead where there is something."""
        fields = [name if new is None else f"{name} (sent as {new})" for name, new in self._fields.items()]
        broke = [f"{name} (failed with status 500, worked without)" for name in self._broke]
        return fields + broke + [f"role {old} (sent as {new})" for old, new in self.roles.items()]

    def trial(self, asker: object) -> Trial:
        """How the present question of ``asker`` goes out."""
        return self._doubts.trial(asker)

    def roles_in(self, trial: Trial) -> dict[str, str]:
        """Roles that are sent under another name; one that is left out to see whether that helps, as the user's."""
        left_out = trial.left_out & _LINE_OF.keys() if trial.left_out else None
        return {**self.roles, **dict.fromkeys(left_out | self._refused_roles, "user")} if left_out else self.roles

    def sent_as(self, field: str) -> str | None:
        """The name under which ``field`` is accepted, ``None`` when under none."""
        name: str | None = field
        while name is not None and name in self._fields:
            name = self._fields[name]
        return name

    def learn(self, error: ApiError, sent: Collection[str], form: AnswerForm | None) -> bool:
        """Whether the refusal names something that the same call can go on without.

        ``sent`` are the optional fields of the refused request, ``form`` how it asked for an object, if it did.
        """
        field = error.param.replace("[", ".").split(".")[0] if error.param else ""
        if form is not None and field in _FORM_FIELDS[form]:
            self.take_form(min(self.form, form.below))
            self._fields.setdefault(field, None)
            return True
        code = (error.code or "").lower()
        if field not in sent or not (not code or code.isdigit() or code in _REFUSING_CODES):
            return False
        if field not in self._fields:
            self._fields[field] = _OTHER_NAMES.get(field)
            self.version += 1
        return True

    def learn_role(self, refused: str) -> bool:
        """Whether messages sent under the role ``refused`` may be sent under another: system, developer, then user."""
        if refused not in ("system", "developer"):
            return False
        if refused not in self._refused_roles:
            self._refused_roles.add(refused)
            instead = next(role for role in _ROLES if role not in self._refused_roles)
            self.roles.update({own: instead for own in _ROLES if self.roles.get(own, own) in self._refused_roles})
            self.version += 1
        return True

    def got_through(self, asker: object, trial: Trial, form: AnswerForm | None, body: bytes) -> None:
        """Books a request that was answered, whatever the answer holds."""
        for part in self._doubts.answered(asker, trial, _parts(form, body)):
            if part == FORM:
                self._broke.append(_FORM_NAMES[self.form])
                self.take_form(self.form.below)
            else:
                self.learn_role(part)

    def broke_down(self, asker: object, trial: Trial, form: AnswerForm | None, body: bytes) -> None:
        """Books a request that failed with status 500, which may be the doing of one of its optional parts."""
        self._doubts.failed(asker, trial, _parts(form, body))

    def take_form(self, form: AnswerForm) -> None:
        """From now on structured answers are asked for in this form."""
        if form is not self.form:
            self.form = form
            self._heedless = 0
            self._doubts.forget(FORM)
            self.version += 1

    def answered(self, form: AnswerForm, *, with_object: bool) -> None:
        """Books whether an answer in this form held an object."""
        if form is not self.form or self.form_works:
            return
        if with_object:
            self.form_works = True
            return
        self._heedless += 1
        if self._heedless >= HEEDLESS_ANSWERS:
            self.take_form(form.below)


def _parts(form: AnswerForm | None, body: bytes) -> frozenset[str]:
    """The optional parts of a request body; inside a text of it no quotation mark stands bare."""
    roles = [role for role, line in _LINE_OF.items() if line in body]
    return frozenset((FORM, *roles) if form else roles)
