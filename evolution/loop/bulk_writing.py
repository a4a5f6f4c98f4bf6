"""Many rows written at once by COPY and by one UPDATE: several times as fast as the ORM's own, which binds each value.

What a model's fields need before they are stored is done; signals and `save` methods are passed by.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, Field, JSONField, Model
from django.db.models.expressions import DatabaseDefault

_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


# Values that PostgreSQL takes as they are.
_PLAIN = (str, int, float, bool, type(None))


def insert_rows(rows: Sequence[Model], written: Sequence[Mapping[str, str]] = ()) -> None:
    """Insert new rows of one model, whose relations are stored already, and set their primary keys.

    `written` has for each row what the caller has of its JSON fields as JSON. Raises DataError when one of them can't
    be stored.
    """
    if not rows:
        return
    meta = rows[0]._meta
    _number(rows)
    columns = _columns(type(rows[0]))
    quote = connection.ops.quote_name
    names = ", ".join(map(quote, columns.names))
    statement = f"COPY {quote(meta.db_table)} ({names}) FROM STDIN"
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        for row, texts in zip(rows, written or [{}] * len(rows), strict=True):
            copy.write_row(columns.read(row, texts))
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias  # noqa: SLF001  as bulk_create does


def update_rows(rows: Iterable[Model], names: Sequence[str]) -> None:
    """Store these fields of rows that are there; fields that the model sets itself, as at each save, too."""
    rows = list(rows)
    if not rows:
        return
    meta = rows[0]._meta
    chosen = [meta.get_field(name) for name in names]
    automatic = [field for field in meta.concrete_fields if getattr(field, "auto_now", False)]
    fields: list[Field[Any, Any]] = [*chosen, *(f for f in automatic if f not in chosen)]  # type: ignore[list-item]
    quote = connection.ops.quote_name
    columns = [quote(str(field.column)) for field in fields]
    setting = ", ".join(
        f"{column} = given.{column}::{field.db_type(connection)}"
        for column, field in zip(columns, fields, strict=True)
    )
    statement = (
        f"UPDATE {quote(meta.db_table)} AS stored SET {setting} "  # noqa: S608  names of the model
        f"FROM unnest(%s::bigint[]{', %s::text[]' * len(fields)}) AS given(id, {', '.join(columns)}) "
        "WHERE stored.id = given.id"
    )
    values = [[_as_text(_prepare(field, field.pre_save(row, add=False))) for row in rows] for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(statement, [[row.pk for row in rows], *values])


def analyse_new(*models: type[Model]) -> None:
    """Have PostgreSQL look at tables that it has no statistics of, as when the first rows have just come in.

    Until it does by itself, it takes any index for as good as the right one, and reads all of it at each search.
    """
    tables = [model._meta.db_table for model in models]
    with connection.cursor() as cursor:
        cursor.execute(_UNKNOWN, [tables])
        for (table,) in cursor.fetchall():
            cursor.execute(f"ANALYZE {connection.ops.quote_name(table)}")


_UNKNOWN = """
SELECT relname FROM pg_class WHERE oid = ANY(%s::regclass[]) AND reltuples < 0 AND pg_relation_size(oid) > 0
"""


def _number(rows: Sequence[Model]) -> None:
    meta = rows[0]._meta
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)",
            [meta.db_table, meta.pk.column, len(rows)],
        )
        for row, (number,) in zip(rows, cursor.fetchall(), strict=True):
            row.pk = number


class _Columns:
    """The columns of a model, and what a row has for each as PostgreSQL takes it."""

    def __init__(self, model: type[Model]) -> None:
        fields = list(model._meta.concrete_fields)
        self.names = [str(field.column) for field in fields]
        self._read_all = attrgetter(*(field.attname for field in fields))
        # For the others the row's value is taken as it is, if it is of a plain type.
        self._special = [
            (place, field, str(field.column))
            for place, field in enumerate(fields)
            if isinstance(field, JSONField) or type(field).pre_save is not Field.pre_save
        ]
        special = {place for place, _field, _name in self._special}
        self._others = [(place, field) for place, field in enumerate(fields) if place not in special]

    def read(self, row: Model, written: Mapping[str, str]) -> list[Any]:
        """The values of a row; of its JSON fields those that were written already."""
        values = list(self._read_all(row))
        for place, field, name in self._special:
            values[place] = written.get(name) or _prepare(field, field.pre_save(row, add=True))
        for place, field in self._others:
            if type(values[place]) not in _PLAIN:
                values[place] = _prepare(field, values[place])
        return values


_columns = lru_cache(_Columns)


def _prepare(field: Any, value: Any) -> Any:
    """A value as PostgreSQL takes it for the field's column."""
    if type(value) in _PLAIN and not isinstance(field, JSONField):
        return value
    if isinstance(value, DatabaseDefault):
        value = field.db_default
    if isinstance(field, JSONField):
        return None if value is None else _ENCODE(value)
    if isinstance(value, list) and not value:
        return "{}"
    if isinstance(value, datetime) and value.tzinfo and isinstance(field, DateTimeField):
        return value
    return field.get_db_prep_save(value, connection)


def _as_text(value: Any) -> str | None:
    return None if value is None else str(value)
