;; Emits the same small relation for ever.
(data (i32.const 4096)
  "{\"relation\":{\"source\":\"a\",\"target\":\"b\",\"relation_type\":\"supports\"}}\00")
(func $run (result i32)
  (loop $again
    (drop (call $emit_json (i32.const 4096) (call $length (i32.const 4096))))
    (br $again))
  (unreachable))
