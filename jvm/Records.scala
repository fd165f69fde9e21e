/** How a topic's records become rows: events of a stream, versions of a table, or changes of one. */
package headrace

import java.util.Arrays

import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.spark.sql.catalyst.InternalRow

/** Decodes one record at a time, or throws Dead (rule B1). What it found holds until the next. */
abstract class Records {
  type Rec = ConsumerRecord[Array[Byte], Array[Byte]]

  /** Takes a record in; returns its event time, micros. */
  def take(r: Rec): Long
  /** Its columns; null for a tombstone. */
  def row: InternalRow
  /** The record's key; of a table the row's, as the text of rule F1. */
  def key: Array[Byte]

  protected def stamp(r: Rec): Long =
    if (r.timestamp < 0) throw new Dead("missing-time", "the record has no timestamp") else r.timestamp * 1000
}

object Records {
  def of(topic: TopicSpec): Records =
    if (topic.changes) new ChangeRecords(topic) else if (topic.table) new VersionRecords(topic) else new EventRecords(topic)
}

final class EventRecords(topic: TopicSpec) extends Records {
  private val wire = new WireDecoder(topic.fields, topic.required)
  var key: Array[Byte] = _

  override def row: InternalRow = wire.row

  override def take(r: Rec): Long = {
    if (r.value == null) throw new Dead("undecodable", "the record has no value")
    wire.decode(r.value)
    key = r.key
    if (topic.timeAt >= 0) wire.row.getLong(topic.timeAt) else stamp(r)
  }
}

/** A record holds its row as it is from the row's time on; without a value it is a tombstone, and its own time counts. */
final class VersionRecords(topic: TopicSpec) extends Records {
  private val wire = new WireDecoder(topic.fields, topic.required)
  private val keys = new RowKey(topic)
  var row: InternalRow = _
  var key: Array[Byte] = _

  override def take(r: Rec): Long = {
    if (r.key == null) throw new Dead("missing-key", "the record has no key")
    key = r.key
    row = null
    if (r.value == null) return stamp(r)
    wire.decode(r.value)
    row = wire.row
    // Else a tombstone of the row would not find it.
    val own = keys.text(row)
    if (!Arrays.equals(own, key))
      throw new Dead("schema", s"the record's key is '${new String(key)}', but its row's key is '${new String(own)}'")
    if (topic.timeAt >= 0) row.getLong(topic.timeAt) else stamp(r)
  }
}
