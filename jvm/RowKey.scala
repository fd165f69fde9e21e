/** The key of a table's row, as the text of rule F1. */
package headrace

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow

final class RowKey(topic: TopicSpec) {
  private val at = topic.key.map(name => topic.fields.indexWhere(_.name == name)).toArray
  val fields: Array[Field] = at.map(topic.fields)
  private val columns = new SpecificInternalRow(fields.toSeq.map(_.kind.spark))
  private val wire = new WireEncoder(Field.schema(fields))

  /** Of a whole row. */
  def text(row: InternalRow): Array[Byte] = {
    at.indices.foreach(i => columns.update(i, row.get(at(i), fields(i).kind.spark)))
    wire.key(columns)
  }

  /** Of the key columns alone; null if one of them is null. */
  def alone(columns: InternalRow): Array[Byte] = if (at.indices.exists(columns.isNullAt)) null else wire.key(columns)
}
