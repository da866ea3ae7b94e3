;; The part that all guests share: imports, memory, a description, and calls into $run and $detect of the guest.
;;
;; A guest's own text (its file in this folder) stands in place of the last mark below. It defines
;; (func $run (result i32)), and may use memory from 4096 on. $ok is an answer of `run` that says all is well.
(module
  (import "satchel:importer/files@1.0.0" "[static]reader.open"
    (func $open (param i32 i32 i32)))
  (import "satchel:importer/sink@1.0.0" "emit-json"
    (func $emit_json (param i32 i32) (result i32)))
  (import "satchel:importer/sink@1.0.0" "emit-relations"
    (func $emit_relations (param i32 i32) (result i32)))
  (import "satchel:importer/sink@1.0.0" "skip"
    (func $skip (param i32 i32 i32 i32 i32) (result i32)))
  (import "satchel:importer/sink@1.0.0" "warn"
    (func $warn (param i32 i32 i32 i32)))
  (import "satchel:importer/sink@1.0.0" "progress"
    (func $progress (param i64 i32 i64) (result i32)))
  (import "satchel:importer/log@1.0.0" "log"
    (func $log (param i32 i32 i32)))

  (memory (export "memory") (; pages ;))

  ;; plugin-info at 16: name, version, platform, importer-version, formats.
  (data (i32.const 16)
    "\00\04\00\00\07\00\00\00"
    "\10\04\00\00\05\00\00\00"
    "\00\04\00\00\07\00\00\00"
    "\20\04\00\00\0f\00\00\00"
    "\40\00\00\00\01\00\00\00")
  ;; The one format, at 64.
  (data (i32.const 64) "\00\04\00\00\07\00\00\00")
  (data (i32.const 0x400) "hostile")
  (data (i32.const 0x410) "1.2.3")
  (data (i32.const 0x420) "hostile/2026.01")

  ;; result<summary, import-error> at 128: ok, and a number of bytes that nobody could read.
  (data (i32.const 136) "\ff\ff\ff\ff\ff\ff\ff\7f")
  (global $ok i32 (i32.const 128))

  ;; result<list<detection>, import-error> at 192: ok, and a list of one detection, at 208, of the format "hostile"
  ;; with confidence 200, of two files (at 240), of which the second does not exist; no account.
  (data (i32.const 196) "\d0\00\00\00\01\00\00\00")
  (data (i32.const 208)
    "\00\04\00\00\07\00\00\00"
    "\c8\00\00\00"
    "\f0\00\00\00\02\00\00\00"
    "\00\00\00\00")
  (data (i32.const 240) "\30\04\00\00\06\00\00\00" "\38\04\00\00\07\00\00\00")
  (data (i32.const 0x430) "a.json")
  (data (i32.const 0x438) "no.json")

  ;; Hands out memory from 2048 on, for the arguments of calls only; the guests use little of it.
  (global $heap (mut i32) (i32.const 2048))
  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at
      (i32.and
        (i32.add (global.get $heap) (i32.sub (local.get $align) (i32.const 1)))
        (i32.sub (i32.const 0) (local.get $align))))
    (global.set $heap (i32.add (local.get $at) (local.get $size)))
    (local.get $at))

  ;; Bytes from $from to the next NUL.
  (func $length (param $from i32) (result i32)
    (local $at i32)
    (local.set $at (local.get $from))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (i32.load8_u (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    (i32.sub (local.get $at) (local.get $from)))

  (func (export "satchel:importer/plugin@1.0.0#describe") (result i32) (i32.const 16))
  (func (export "satchel:importer/plugin@1.0.0#detect") (result i32) (call $detect))
  (func (export "satchel:importer/plugin@1.0.0#run") (param i32 i32) (result i32) (call $run))

  (; detect ;)
  (; guest ;)
)
