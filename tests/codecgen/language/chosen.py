"""A format with choices in the place of a field and as elements."""

from __future__ import annotations

SCHEMA = """
enums:
  kind: {unknown: keep, doc: Kinds., values: {topic: 2, broker: 3, gone: 9}}
---
layout: record
fields:
  kind: {type: uvarint, enum: kind}
  version: uvarint
  body: {choice: body, given: {kind: kind}, version: version, unknown: bytes}
---
layout: strict
fields:
  flags: {bits: u8, members: {kind: {at: 0-3, enum: kind}, others: {reserved: keep}}}
  held: u8
  body: {choice: body, given: {kind: flags.kind}, version: held}
  spare: {choice: body, given: {kind: flags.kind}, version: held, when: held > 0}
  after: {type: u8, default: if spare == null then 0 else 1}
---
choice: body
doc: Nothing for gone.
given: {kind: kind}
by: kind
cases: {topic: topic, broker: broker}
---
layout: topic
versions: 0-1
fields: {name: {string: u8}, id: {type: u8, versions: 1}}
---
layout: broker
fields: {id: u16}
---
layout: pair
accepts: [negative_null]
fields:
  key: {choice: key, length: varint, none: -1}
  value: {choice: value, given: {kind: key.version}, length: i16, none: -1, unknown: bytes}
---
choice: key
by: version
cases: {0-1: commit, 2: group}
---
choice: value
given: {kind: i16}
by: kind
cases: {-1: nothing, 0-1: rest, 2: broker}
---
layout: commit
versions: 0-1
fields: {version: {type: i16, is: version}, name: {string: u8}}
---
layout: group
accepts: [trailing_bytes]
fields: {version: {type: i16, const: 2}, name: {string: u8}}
---
layout: rest
fields: {data: {bytes: rest}}
---
layout: nothing
versions: 0
fields: {never: {type: u8, when: 0 == 1}}
---
layout: several
versions: 0-1
fields:
  kind: u8
  ks: {array: {choice: key}, count: u8}
  vs: {array: {choice: value, given: {kind: kind}, length: u8, none: 255, unknown: bytes}, count: u8}
  bodies: {array: {choice: around, given: {kind: kind}}, until: end}
---
choice: around
given: {kind: u8}
by: kind
cases: {0-2: topic, 255: broker}
---
layout: told
fields:
  version: u8
  size: {type: u8, measures: {from: topic, to: topic}}
  topic: {layout: topic, none: {type: i8, value: -1}, version: version}
  commit: {layout: commit, version: version}
---
layout: node
fields: {kind: u8, next: {choice: node_or_end, given: {kind: kind}}}
---
choice: node_or_end
given: {kind: u8}
by: kind
cases: {0: broker, 1: node}
"""
