"""Who asks, and whether RBAC lets them: by the Roles and RoleBindings of the manifests that we ship."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.kubernetes_api.store import Problem

Json = dict[str, Any]
ADMIN = "admin"


@dataclass(frozen=True)
class Right:
    """What a request needs. ``resource`` has its subresource: ``pods/log``."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str = ""

    @property
    def words(self) -> tuple[str, str, str]:
        return self.group, self.resource, self.verb


@dataclass(frozen=True)
class Rule:
    namespace: str
    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...]

    def grants(self, right: Right) -> bool:
        return (
            right.namespace == self.namespace
            and right.group in self.groups
            and right.resource in self.resources
            and right.verb in self.verbs
            and (not self.names or right.name in self.names)
        )

    def words(self) -> set[tuple[str, str, str]]:
        return {(g, r, v) for g in self.groups for r in self.resources for v in self.verbs}


@dataclass
class Access:
    """Tokens, and what their users may. ``used``: the rights that were needed and granted, by user."""

    tokens: dict[str, str] = field(default_factory=dict)
    rules: dict[str, list[Rule]] = field(default_factory=dict)
    used: dict[str, set[tuple[str, str, str]]] = field(default_factory=dict)

    def bind(self, manifests: Iterable[Json]) -> None:
        """Take Roles and RoleBindings. A ServiceAccount is the user system:serviceaccount:NAMESPACE:NAME."""
        things = [thing for thing in manifests if thing]
        roles = {
            (thing["metadata"]["namespace"], thing["metadata"]["name"]): thing
            for thing in things
            if thing["kind"] == "Role"
        }
        for binding in (thing for thing in things if thing["kind"] == "RoleBinding"):
            namespace = binding["metadata"]["namespace"]
            role = roles[namespace, binding["roleRef"]["name"]]
            for subject in binding["subjects"]:
                user = f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
                self.rules.setdefault(user, []).extend(_rule(namespace, rule) for rule in role["rules"])

    def extend(self, user: str, namespace: str, further: str) -> None:
        """The rules of ``user`` in ``namespace`` in ``further`` too, as with another copy of the role."""
        rules = self.rules.get(user, [])
        names = {namespace: further}
        self.rules[user] = rules + [
            replace(rule, namespace=further, names=tuple(names.get(name, name) for name in rule.names))
            for rule in rules
            if rule.namespace == namespace and further != namespace
        ]

    def user(self, authorization: str) -> str:
        """By the bearer token. Raises Problem (401)."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or token not in self.tokens:
            raise Problem(401, "Unauthorized", "Unauthorized")
        return self.tokens[token]

    def allows(self, user: str, right: Right) -> bool:
        return user == ADMIN or any(rule.grants(right) for rule in self.rules.get(user, ()))

    def require(self, user: str, right: Right) -> None:
        """Raises Problem (403), in the words of the API."""
        if not self.allows(user, right):
            named = f' "{right.name}"' if right.name else ""
            raise Problem(
                403,
                "Forbidden",
                f'{right.resource}{named} is forbidden: User "{user}" cannot {right.verb} resource'
                f' "{right.resource}" in API group "{right.group}" in the namespace "{right.namespace}"',
            )
        self.used.setdefault(user, set()).add(right.words)

    def granted(self, user: str) -> set[tuple[str, str, str]]:
        return {words for rule in self.rules.get(user, ()) for words in rule.words()}

    def review(self, user: str, review: Json) -> Json:
        """The answer to a SelfSubjectAccessReview."""
        asked = review["spec"]["resourceAttributes"]
        resource = asked["resource"] + (f"/{asked['subresource']}" if asked.get("subresource") else "")
        right = Right(
            asked["verb"], asked.get("group", ""), resource, asked.get("namespace", ""), asked.get("name", "")
        )
        allowed = self.allows(user, right)
        return {**review, "metadata": {}, "status": {"allowed": allowed, "reason": "RBAC" if allowed else ""}}


def _rule(namespace: str, rule: Json) -> Rule:
    return Rule(
        namespace,
        tuple(rule["apiGroups"]),
        tuple(rule["resources"]),
        tuple(rule["verbs"]),
        tuple(rule.get("resourceNames", ())),
    )
