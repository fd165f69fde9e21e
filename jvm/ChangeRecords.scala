/** Changes of a table, as Headrace writes them (rule F2) and as Debezium does: {op, before, after} and when.
  *
  * The row is what is after. Where nothing is, it was deleted: `before` says which, or else the record's key. Its time is
  * `version` (ours: micros, or a time as text) or `ts_ms` (Debezium's), else the record's own. */
package headrace

import org.apache.spark.sql.catalyst.InternalRow

final class ChangeRecords(topic: TopicSpec) extends Records {
  import WireTime.None

  private val json = new JsonScanner
  private val keys = new RowKey(topic)
  private val after = new WireDecoder(topic.fields, topic.required, json)
  /** Of what was before only the key matters, and Debezium may know no more of it. */
  private val before = new WireDecoder(keys.fields.map(_.copy(nullable = true)), Map.empty, json)
  private var op = ""
  private var told = false // is there a field `after`, if only null?
  private var version = None
  private var written = None
  var row: InternalRow = _
  var key: Array[Byte] = _

  override def take(r: Rec): Long = {
    row = null
    key = null
    version = None
    written = None
    if (r.value != null) change(r.value)
    if (row != null) key = keys.text(row) else if (key == null) key = ofRecord(r)
    if (version != None) version else if (written != None) written else stamp(r)
  }

  private def change(value: Array[Byte]): Unit = {
    op = ""
    told = false
    json.reset(value)
    try { json.members(field); json.ended() }
    catch { case m: Malformed => throw new Dead("undecodable", m.getMessage) }
    if (!told || !ChangeRecords.Ops(op)) throw new Dead("undecodable", s"the value is no change of a row: its op is '$op'")
  }

  private def field(name: String): Unit = name match {
    case "op" if json.peek() == '"' => json.string(); op = json.text().toString
    case "after" => told = true; if (!isNull) { after.within(); row = after.row }
    case "before" => if (!isNull) { before.within(); key = keys.alone(before.row) }
    case "version" => if (!isNull) version = if (json.peek() == '"') moment(name) else whole(name)
    case "ts_ms" => if (!isNull) written = whole(name) * 1000
    case _ => json.skip()
  }

  private def isNull: Boolean = json.peek() == 'n' && { json.word("null"); true }

  private def moment(name: String): Long = {
    json.string()
    val bytes = json.plain()
    val found = WireTime.parse(bytes, json.start, json.end)
    if (found == None) wrong(name) else found
  }

  private def whole(name: String): Long = {
    val c = json.peek()
    if (c != '-' && (c < '0' || c > '9')) wrong(name)
    json.number()
    if (json.whole) Numbers.long(json.bytes, json.start, json.end, () => wrong(name)) else wrong(name)
  }

  private def wrong(name: String): Nothing = throw new Dead("schema", s"field $name is no time")

  /** The record's key: text as rule F1 has it, or an object of the key columns, as Debezium writes it. */
  private def ofRecord(r: Rec): Array[Byte] = {
    if (r.key == null) throw new Dead("missing-key", "neither the change nor its record says whose it is")
    json.reset(r.key)
    val found = if (json.peek() != '{') null else try { before.within(); keys.alone(before.row) } catch { case _: Malformed | _: Dead => null }
    if (found == null) r.key else found
  }
}

object ChangeRecords {
  private val Ops = Set("insert", "update", "delete", "c", "r", "u", "d")
}
