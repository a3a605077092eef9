"""The objects of a session: all of them in order, and the last of each name."""

from typing import Dict, Iterator, List, Optional

from ._objects import Object


class State:
    """The objects seen so far. By name like a dictionary, where the last of a name counts; iterating
    goes over all of them, in order, those without a name included. The length counts names."""

    def __init__(self) -> None:
        self._dict: Dict[str, Object] = {}
        self._list: List[Object] = []
        self._memory_namespaces: Dict[str, str] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return self.__dict__ == other.__dict__

    __hash__ = None

    def __iter__(self) -> Iterator[Object]:
        return iter(self._list)

    def __len__(self) -> int:
        return len(self._dict)

    def __getitem__(self, key: str) -> Object:
        return self._dict[key]

    def __setitem__(self, key: str, value: Object) -> None:
        self._dict[key] = value
        self._list.append(value)

    def __contains__(self, key: str) -> bool:
        return key in self._dict

    def append(self, value: Object) -> None:
        """Adds an object, and its name if it has one."""
        name = value.name()
        if name:
            self._dict[name] = value
        self._list.append(value)

    def add_memory_namespace(self, namespace: str, url: str) -> None:
        """Has names that begin with `namespace` be found below `url`."""
        self._memory_namespaces[namespace] = url

    def get_memory_url(self, name: str) -> Optional[str]:
        """Where a name is found that lies in a memory namespace, the longest that fits; else None."""
        if "/" not in name:
            return None
        for namespace in sorted(self._memory_namespaces, reverse=True):
            if name.startswith(namespace):
                return self._memory_namespaces[namespace] + name[len(namespace) :]
        return None
