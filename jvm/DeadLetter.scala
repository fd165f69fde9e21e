/** A dead letter made inside a kernel: a row that a step refuses (rules B3, D5), as the chain takes it to its topic. */
package headrace

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The row's own columns as JSON stand for its bytes: the record itself is no longer at hand. */
final class DeadLetter(app: String, topics: Array[String], columns: StructType) {
  private val encoder = new WireEncoder(columns)
  private val header = new StructType().add("key", StringType).add("value", BinaryType)
  private val record = UnsafeProjection.create(Array[DataType](StringType, BinaryType, StringType, BinaryType, ArrayType(header)))

  def of(reason: String, src: Int, row: InternalRow): Array[Byte] = record(new GenericInternalRow(Array[Any](
    UTF8String.fromString(topic(src) + ".dead"),
    encoder.encode(row),
    UTF8String.fromString(s"$reason: ${DeadLetter.WORDS(reason)}"),
    null,
    null
  ))).copy().getBytes

  def key(src: Int, part: Int, off: Long): Array[Byte] = s"$app/${topic(src)}/$part/$off".getBytes(UTF_8)

  /** What a step made belongs to the flow's first topic. */
  private def topic(src: Int): String = topics(if (src < topics.length) src else 0)
}

object DeadLetter {
  private val WORDS = Map(
    "nan" -> "a float that is no number",
    "overflow" -> "a sum would leave 128 bits",
    "too-many" -> "its key holds as many rows as it may",
    "refused" -> "its key has as many partial matches as the pattern allows"
  )
}
