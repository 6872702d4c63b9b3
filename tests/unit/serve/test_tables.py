"""Operations on tables, as the protocol has them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa

from frazil.table.lake import Lake
from tests.support.served_lake import SCHEMA, Reply, Served, table_path


def properties_of(reply: Reply) -> dict[str, str]:
    found: dict[str, str] = reply.json["metadata"]["properties"]
    return found


def set_property(server: Served, db: str, name: str = "t", **properties: str) -> Reply:
    update = {"action": "set-properties", "updates": properties}
    return server.post(table_path(name, db), {"requirements": [], "updates": [update]})


def append(server: Served, db: str, name: str = "t") -> int:
    """Append a row here, beside the server; return the snapshot's id."""
    made = Lake(server.catalog).table((db, name)).append(pa.table({"id": pa.array([1], pa.int64()), "kind": ["a"]}))
    assert made is not None
    return made.snapshot_id


def test_table_is_created_loaded_and_dropped(server: Served, db: str) -> None:
    made = server.make_table("t", db, properties={"a": "b", "format-version": "3"})
    assert made.json["metadata"]["format-version"] == 3
    assert properties_of(made)["a"] == "b"
    assert made.json["metadata-location"].startswith("file:///")
    loaded = server.get(table_path("t", db))
    assert loaded.json["metadata"] == made.json["metadata"]
    assert loaded.headers["etag"] == made.headers["etag"]
    assert server.ask("HEAD", table_path("t", db)).code == 204
    assert server.ask("DELETE", table_path("t", db)).code == 204
    assert server.ask("HEAD", table_path("t", db)).code == 404
    gone = server.get(table_path("t", db))
    assert (gone.code, gone.error) == (404, "NoSuchTableException")


def test_requested_spec_order_and_location_are_used(server: Served, db: str, tmp_path: Path) -> None:
    made = server.make_table(
        "t",
        db,
        location=f"{server.catalog.warehouse}/elsewhere",
        **{
            "partition-spec": {"fields": [{"source-id": 2, "transform": "identity", "name": "kind"}]},
            "write-order": {
                "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]
            },
        },
    )
    metadata = made.json["metadata"]
    assert metadata["location"] == f"{server.catalog.warehouse}/elsewhere"
    assert metadata["partition-specs"][0]["fields"][0]["name"] == "kind"
    assert metadata["sort-orders"][0]["order-id"] == 1


def test_names_may_contain_any_character(server: Served, db: str) -> None:
    for name in ("a/b", "a.b", "ä b", "%2F", "rename", "plan"):
        server.make_table(name, db)
        assert server.get(table_path(name, db)).code == 200, name
    names = {one["name"] for one in server.get(f"/v1/namespaces/{db}/tables").json["identifiers"]}
    assert names == {"a/b", "a.b", "ä b", "%2F", "rename", "plan"}


def test_client_with_the_current_state_gets_not_modified(server: Served, db: str) -> None:
    tag = server.make_table("t", db).headers["etag"]
    same = server.get(table_path("t", db), **{"If-None-Match": tag})
    assert (same.code, same.body, same.headers["etag"]) == (304, b"", tag)
    refs = server.get(f"{table_path('t', db)}?snapshots=refs", **{"If-None-Match": tag})
    assert refs.code == 200
    assert refs.headers["etag"] != tag
    changed = set_property(server, db, a="b").headers["etag"]
    assert server.get(table_path("t", db), **{"If-None-Match": tag}).headers["etag"] == changed
    assert server.get(table_path("t", db), **{"If-None-Match": f'"x", {changed}'}).code == 304


def test_refs_mode_omits_unreferenced_snapshots(server: Served, db: str) -> None:
    server.make_table("t", db)
    append(server, db)
    last = append(server, db)
    assert len(server.get(table_path("t", db)).json["metadata"]["snapshots"]) == 2
    refs = server.get(f"{table_path('t', db)}?snapshots=refs").json["metadata"]
    assert [one["snapshot-id"] for one in refs["snapshots"]] == [last]
    assert server.get(f"{table_path('t', db)}?snapshots=some").code == 400


def test_commit_is_applied_if_its_requirements_hold(server: Served, db: str) -> None:
    uuid = server.make_table("t", db).json["metadata"]["table-uuid"]
    required = [{"type": "assert-table-uuid", "uuid": uuid}, {"type": "assert-ref-snapshot-id", "ref": "main"}]
    update = {"action": "set-properties", "updates": {"a": "1"}}
    done = server.post(table_path("t", db), {"requirements": required, "updates": [update]})
    assert done.code == 200
    assert properties_of(done)["a"] == "1"
    assert server.get(table_path("t", db)).json["metadata-location"] == done.json["metadata-location"]
    append(server, db)
    late = server.post(table_path("t", db), {"requirements": required, "updates": [update]})
    assert (late.code, late.error) == (409, "CommitFailedException")
    assert late.json["error"]["message"].startswith("Requirement failed: branch or tag main has changed")


def test_unsupported_updates_are_refused(server: Served, db: str) -> None:
    server.make_table("t", db)
    bodies: list[Any] = [
        {"requirements": [], "updates": [{"action": "fly"}]},
        {"requirements": [{"type": "assert-weather"}], "updates": []},
        {"requirements": []},
        {"updates": []},
        {"requirements": [], "updates": [{"action": "set-current-view-version", "view-version-id": 1}]},
        {"requirements": [], "updates": [], "identifier": {"namespace": [db], "name": "other"}},
        {"requirements": [], "updates": [{"action": "set-current-schema", "schema-id": 99}]},
    ]
    for body in bodies:
        refused = server.post(table_path("t", db), body)
        assert (refused.code, refused.error) == (400, "BadRequestException"), body
    none = server.post(table_path("none", db), {"requirements": [], "updates": []})
    assert (none.code, none.error) == (404, "NoSuchTableException")


def test_many_concurrent_writers_all_commit(server: Served, db: str) -> None:
    server.make_table("t", db)
    codes: list[int] = []

    def write(at: int) -> None:
        codes.append(set_property(server, db, **{f"p{at}": "x"}).code)

    threads = [threading.Thread(target=write, args=(at,)) for at in range(12)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert codes == [200] * 12
    assert len({name for name in properties_of(server.get(table_path("t", db))) if name.startswith("p")}) == 12


def test_staged_table_is_created_by_its_first_commit(server: Served, db: str) -> None:
    path = f"/v1/namespaces/{db}/tables"
    staged = server.post(path, {"name": "t", "schema": SCHEMA, "stage-create": True})
    assert (staged.code, staged.json["metadata-location"]) == (200, None)
    assert server.ask("HEAD", table_path("t", db)).code == 404
    metadata = staged.json["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    body = {"requirements": [{"type": "assert-create"}], "updates": updates}
    made = server.post(table_path("t", db), body)
    assert made.code == 200, made.body
    assert made.json["metadata"]["table-uuid"] == metadata["table-uuid"]
    again = server.post(table_path("t", db), body)
    assert (again.code, again.error) == (409, "CommitFailedException")
    assert "table already exists" in again.json["error"]["message"]


def test_table_is_registered_replaced_and_unregistered(server: Served, db: str) -> None:
    location = server.make_table("t", db).json["metadata-location"]
    newer = set_property(server, db, a="b").json["metadata-location"]
    gone = server.post(f"{table_path('t', db)}/unregister")
    assert (gone.code, gone.json["metadata-location"]) == (200, newer)
    path = f"/v1/namespaces/{db}/register"
    back = server.post(path, {"name": "back", "metadata-location": location})
    assert (back.code, back.json["metadata-location"]) == (200, location)
    taken = server.post(path, {"name": "back", "metadata-location": newer})
    assert (taken.code, taken.error) == (409, "AlreadyExistsException")
    over = server.post(path, {"name": "back", "metadata-location": newer, "overwrite": True})
    assert over.json["metadata-location"] == newer
    missing = f"{server.catalog.warehouse}/none/v1.metadata.json"
    none = server.post(path, {"name": "none", "metadata-location": missing})
    assert (none.code, none.error) == (400, "BadRequestException")
    assert server.post("/v1/namespaces/none/register", {"name": "x", "metadata-location": newer}).code == 404


def test_table_is_renamed_and_names_stay_unique(server: Served, db: str) -> None:
    server.make_table("a", db)
    server.make_table("b", db)

    def rename(source: str, target: str, namespace: str = db) -> Reply:
        names = {
            "source": {"namespace": [db], "name": source},
            "destination": {"namespace": [namespace], "name": target},
        }
        return server.post("/v1/tables/rename", names)

    taken = rename("a", "b")
    assert (taken.code, taken.error) == (409, "AlreadyExistsException")
    assert rename("a", "c").code == 204
    assert rename("a", "d").error == "NoSuchTableException"
    assert rename("c", "d", "none").error == "NoSuchNamespaceException"
    assert server.ask("HEAD", table_path("c", db)).code == 204


def test_purge_deletes_files_and_drop_keeps_them(server: Served, db: str) -> None:
    kept = Path(server.make_table("kept", db).json["metadata-location"].removeprefix("file://"))
    gone = Path(server.make_table("gone", db).json["metadata-location"].removeprefix("file://"))
    assert server.ask("DELETE", f"{table_path('kept', db)}?purgeRequested=false").code == 204
    assert server.ask("DELETE", f"{table_path('gone', db)}?purgeRequested=true").code == 204
    assert (kept.exists(), gone.exists()) == (True, False)
    assert server.ask("DELETE", f"{table_path('gone', db)}?purgeRequested=maybe").code == 400


def test_transaction_changes_all_tables_or_none(server: Served, db: str) -> None:
    for name in ("a", "b"):
        server.make_table(name, db)

    def change(name: str, *requirements: object) -> dict[str, object]:
        return {
            "identifier": {"namespace": [db], "name": name},
            "requirements": list(requirements),
            "updates": [{"action": "set-properties", "updates": {"p": "1"}}],
        }

    wrong = {"type": "assert-current-schema-id", "current-schema-id": 7}
    late = server.post("/v1/transactions/commit", {"table-changes": [change("a"), change("b", wrong)]})
    assert (late.code, late.error) == (409, "CommitFailedException")
    assert "p" not in properties_of(server.get(table_path("a", db)))
    none = server.post("/v1/transactions/commit", {"table-changes": [change("a"), change("none")]})
    assert (none.code, none.error) == (404, "NoSuchTableException")
    done = server.post("/v1/transactions/commit", {"table-changes": [change("a"), change("b")]})
    assert (done.code, done.body) == (204, b"")
    assert properties_of(server.get(table_path("a", db)))["p"] == "1"
    assert properties_of(server.get(table_path("b", db)))["p"] == "1"
    bad: list[Any] = [{"table-changes": []}, {"table-changes": [change("a"), change("a")]}, {"table-changes": [{}]}]
    for body in bad:
        assert server.post("/v1/transactions/commit", body).code == 400, body


def test_lost_metadata_file_is_reported_by_name(server: Served, db: str) -> None:
    location = server.make_table("t", db).json["metadata-location"]
    path = Path(location.removeprefix("file://"))
    path.rename(path.with_suffix(".away"))
    lost = server.get(table_path("t", db))
    assert (lost.code, lost.error) == (404, "NotFoundException")
    assert location in lost.json["error"]["message"]


def test_referencing_views_may_be_named(server: Served, db: str) -> None:
    server.make_table("t", db)
    assert server.get(f"{table_path('t', db)}?referenced-by={db}%1Fv,{db}%1Fin%1Fw").code == 200
    assert server.get(f"{table_path('t', db)}?referenced-by=v").code == 400


def test_commits_of_other_writers_are_visible_at_once(server: Served, db: str) -> None:
    server.make_table("t", db)
    for _ in range(3):
        made = append(server, db)
        assert server.get(table_path("t", db)).json["metadata"]["current-snapshot-id"] == made


def test_prefix_is_the_catalog_name(server: Served, db: str) -> None:
    server.make_table("t", db)
    assert server.get(f"/v1/lake/namespaces/{db}/tables/t").code == 200
    other = server.get(f"/v1/other/namespaces/{db}/tables/t")
    assert (other.code, other.error) == (404, "NoSuchWarehouseException")
