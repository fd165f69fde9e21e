/** Kinds of values: how each is read from a row, compared, told apart, and kept in a blob.
  *
  * Values are held as Spark holds them inside rows: Long (ints, and times in micros), Double, Decimal, UTF8String,
  * Boolean, Array[Byte], ArrayData. */
package headrace.steps

import java.math.BigInteger
import java.nio.ByteBuffer
import java.util.Arrays

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

abstract class Kind {

  /** The value at this place, free of the row's memory. Asked only where it is not null. */
  def get(row: InternalRow, at: Int): Any

  /** Compares the row's value with a held one, without making an object of it where that is possible. */
  def compare(row: InternalRow, at: Int, held: Any): Int

  def compare(one: Any, other: Any): Int

  /** The bytes by which values are told apart and hashed: the same in Python. */
  def canonical(value: Any): Array[Byte]

  def write(value: Any, out: BlobWriter): Unit

  def read(in: BlobReader): Any

  /** The item at this place of a list. */
  def item(list: ArrayData, at: Int): Any

  def nullable(row: InternalRow, at: Int): Any = if (row.isNullAt(at)) null else get(row, at)

  def writeNullable(value: Any, out: BlobWriter): Unit = {
    out.bool(value != null)
    if (value != null) write(value, out)
  }

  def readNullable(in: BlobReader): Any = if (in.bool()) read(in) else null
}

object Kind {

  /** A type in Spark's SQL words: `bigint`, `decimal(18,2)`, `array<string>`. */
  def of(name: String): Kind = of(CatalystSqlParser.parseDataType(name))

  def of(dataType: DataType): Kind = dataType match {
    case LongType | TimestampType => Whole
    case DoubleType => Real
    case decimal: DecimalType => new Exact(decimal.precision, decimal.scale)
    case StringType => Text
    case BooleanType => Truth
    case BinaryType => Bytes
    case list: ArrayType => new Items(of(list.elementType))
    case other => throw new IllegalArgumentException(s"no kernel holds values of type ${other.sql}")
  }

  private def ascii(text: String): Array[Byte] = text.getBytes(java.nio.charset.StandardCharsets.US_ASCII)

  object Whole extends Kind {
    def get(row: InternalRow, at: Int): Any = row.getLong(at)
    def compare(row: InternalRow, at: Int, held: Any): Int = java.lang.Long.compare(row.getLong(at), held.asInstanceOf[Long])
    def compare(one: Any, other: Any): Int = java.lang.Long.compare(one.asInstanceOf[Long], other.asInstanceOf[Long])
    def canonical(value: Any): Array[Byte] = ascii(value.toString)
    def write(value: Any, out: BlobWriter): Unit = out.long(value.asInstanceOf[Long])
    def read(in: BlobReader): Any = in.long()
    def item(list: ArrayData, at: Int): Any = list.getLong(at)
  }

  object Real extends Kind {
    def get(row: InternalRow, at: Int): Any = row.getDouble(at)
    def compare(row: InternalRow, at: Int, held: Any): Int = order(row.getDouble(at), held.asInstanceOf[Double])
    def compare(one: Any, other: Any): Int = order(one.asInstanceOf[Double], other.asInstanceOf[Double])
    // Adding 0.0 makes 0.0 of -0.0: they are one value.
    def canonical(value: Any): Array[Byte] = ByteBuffer.allocate(8).putDouble(value.asInstanceOf[Double] + 0.0).array
    def write(value: Any, out: BlobWriter): Unit = out.double(value.asInstanceOf[Double])
    def read(in: BlobReader): Any = in.double()
    def item(list: ArrayData, at: Int): Any = list.getDouble(at)

    private def order(one: Double, other: Double): Int = if (one < other) -1 else if (one > other) 1 else 0
  }

  final class Exact(val precision: Int, val scale: Int) extends Kind {
    val short: Boolean = precision <= Decimal.MAX_LONG_DIGITS

    def get(row: InternalRow, at: Int): Any = row.getDecimal(at, precision, scale)

    def compare(row: InternalRow, at: Int, held: Any): Int = compare(get(row, at), held)

    def compare(one: Any, other: Any): Int = one.asInstanceOf[Decimal].compare(other.asInstanceOf[Decimal])

    def canonical(value: Any): Array[Byte] = ascii(unscaled(value).toString)

    def write(value: Any, out: BlobWriter): Unit =
      if (short) out.long(value.asInstanceOf[Decimal].toUnscaledLong) else out.binary(unscaled(value).toByteArray)

    def read(in: BlobReader): Any =
      if (short) Decimal(in.long(), precision, scale) else made(new BigInteger(in.binary()))

    def item(list: ArrayData, at: Int): Any = list.getDecimal(at, precision, scale)

    /** The value in whole units of its scale. */
    def unscaled(value: Any): BigInteger = value.asInstanceOf[Decimal].toJavaBigDecimal.unscaledValue

    def made(unscaled: BigInteger): Decimal = Decimal(new java.math.BigDecimal(unscaled, scale), precision, scale)
  }

  object Text extends Kind {
    def get(row: InternalRow, at: Int): Any = row.getUTF8String(at).copy()
    def compare(row: InternalRow, at: Int, held: Any): Int = row.getUTF8String(at).binaryCompare(held.asInstanceOf[UTF8String])
    def compare(one: Any, other: Any): Int = one.asInstanceOf[UTF8String].binaryCompare(other.asInstanceOf[UTF8String])
    def canonical(value: Any): Array[Byte] = value.asInstanceOf[UTF8String].getBytes
    def write(value: Any, out: BlobWriter): Unit = out.binary(value.asInstanceOf[UTF8String].getBytes)
    def read(in: BlobReader): Any = UTF8String.fromBytes(in.binary())
    def item(list: ArrayData, at: Int): Any = list.getUTF8String(at).copy()
  }

  object Truth extends Kind {
    def get(row: InternalRow, at: Int): Any = row.getBoolean(at)
    def compare(row: InternalRow, at: Int, held: Any): Int = compare(get(row, at), held)
    def compare(one: Any, other: Any): Int = java.lang.Boolean.compare(one.asInstanceOf[Boolean], other.asInstanceOf[Boolean])
    def canonical(value: Any): Array[Byte] = ascii(value.toString)
    def write(value: Any, out: BlobWriter): Unit = out.bool(value.asInstanceOf[Boolean])
    def read(in: BlobReader): Any = in.bool()
    def item(list: ArrayData, at: Int): Any = list.getBoolean(at)
  }

  object Bytes extends Kind {
    def get(row: InternalRow, at: Int): Any = row.getBinary(at)
    def compare(row: InternalRow, at: Int, held: Any): Int = compare(get(row, at), held)
    def compare(one: Any, other: Any): Int = Arrays.compareUnsigned(one.asInstanceOf[Array[Byte]], other.asInstanceOf[Array[Byte]])
    def canonical(value: Any): Array[Byte] = value.asInstanceOf[Array[Byte]]
    def write(value: Any, out: BlobWriter): Unit = out.binary(value.asInstanceOf[Array[Byte]])
    def read(in: BlobReader): Any = in.binary()
    def item(list: ArrayData, at: Int): Any = list.getBinary(at)
  }

  final class Items(of: Kind) extends Kind {
    def get(row: InternalRow, at: Int): Any = copied(row.getArray(at))

    def compare(row: InternalRow, at: Int, held: Any): Int = throw new UnsupportedOperationException("lists have no order")

    def compare(one: Any, other: Any): Int = throw new UnsupportedOperationException("lists have no order")

    def canonical(value: Any): Array[Byte] = {
      val out = new BlobWriter
      write(value, out)
      out.result()
    }

    def write(value: Any, out: BlobWriter): Unit = {
      val list = value.asInstanceOf[ArrayData]
      out.long(list.numElements())
      var i = 0
      while (i < list.numElements()) {
        of.writeNullable(if (list.isNullAt(i)) null else of.item(list, i), out)
        i += 1
      }
    }

    def read(in: BlobReader): Any = new GenericArrayData(Array.fill[Any](in.int())(of.readNullable(in)))

    def item(list: ArrayData, at: Int): Any = copied(list.getArray(at))

    private def copied(list: ArrayData): ArrayData =
      new GenericArrayData(Array.tabulate[Any](list.numElements())(i => if (list.isNullAt(i)) null else of.item(list, i)))
  }
}
