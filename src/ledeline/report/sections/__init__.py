"""The sections of the page: what each shows, as plain data for its template."""

from typing import ClassVar, Protocol


class Section(Protocol):
    """A part of the page, which its template draws."""

    anchor: ClassVar[str]  # the id of the section, for links
    title: ClassVar[str]
    template: ClassVar[str]
