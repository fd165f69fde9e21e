/** Onto the wire (rule F1): typed columns to a JSON object, written by hand into one growing buffer. */
package headrace

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

/** Encodes rows of one schema. Not for several threads: the buffer is reused. */
final class WireEncoder(schema: StructType) {
  private var out = new Array[Byte](256)
  private var n = 0
  private val types = schema.fields.map(_.dataType)
  /** `{"a":` and `,"b":`, written once. */
  private val labels: Array[Array[Byte]] = schema.fields.zipWithIndex.map { case (f, i) =>
    n = 0
    put(if (i == 0) '{' else ',')
    quoted(f.name.getBytes(UTF_8))
    put(':')
    take()
  }

  /** The row as a JSON object. */
  def encode(row: SpecializedGetters): Array[Byte] = {
    n = 0
    if (labels.isEmpty) put('{')
    var i = 0
    while (i < labels.length) { put(labels(i)); value(row, i, types(i)); i += 1 }
    put('}')
    take()
  }

  /** The row as a record key: one column as its bare text, several as a JSON array; null if the only one is null. */
  def key(row: SpecializedGetters): Array[Byte] = {
    n = 0
    if (types.length == 1) {
      if (row.isNullAt(0)) return null
      types(0) match {
        case _: StringType => return row.getUTF8String(0).getBytes
        case BinaryType => return row.getBinary(0)
        case _ => value(row, 0, types(0))
      }
      // Money and times are quoted in JSON, bare in a key.
      return if (out(0) == '"') java.util.Arrays.copyOfRange(out, 1, n - 1) else take()
    }
    put('[')
    var i = 0
    while (i < types.length) { if (i > 0) put(','); value(row, i, types(i)); i += 1 }
    put(']')
    take()
  }

  private def value(row: SpecializedGetters, i: Int, kind: DataType): Unit =
    if (row.isNullAt(i)) put("null")
    else kind match {
      case _: StringType => quoted(row.getUTF8String(i).getBytes)
      case LongType => long(row.getLong(i))
      case IntegerType => long(row.getInt(i).toLong)
      case BooleanType => put(if (row.getBoolean(i)) "true" else "false")
      case TimestampType => time(row.getLong(i))
      case d: DecimalType => decimal(row.getDecimal(i, d.precision, d.scale), d)
      case DoubleType => double(row.getDouble(i))
      case BinaryType => put('"'); put(Base64.getEncoder.encode(row.getBinary(i))); put('"')
      case ArrayType(item, _) => list(row.getArray(i), item)
      case s: StructType => struct(row.getStruct(i, s.length), s)
      case other => throw new IllegalArgumentException(s"a column of type ${other.sql} has no wire form")
    }

  private def list(items: org.apache.spark.sql.catalyst.util.ArrayData, kind: DataType): Unit = {
    put('[')
    var i = 0
    while (i < items.numElements()) { if (i > 0) put(','); value(items, i, kind); i += 1 }
    put(']')
  }

  private def struct(row: SpecializedGetters, schema: StructType): Unit = {
    put('{')
    var i = 0
    while (i < schema.length) {
      if (i > 0) put(',')
      quoted(schema.fields(i).name.getBytes(UTF_8))
      put(':')
      value(row, i, schema.fields(i).dataType)
      i += 1
    }
    put('}')
  }

  private def time(micros: Long): Unit = {
    room(WireTime.Length + 2)
    put('"')
    WireTime.write(micros, out, n)
    n += WireTime.Length
    put('"')
  }

  private def decimal(value: Decimal, kind: DecimalType): Unit = {
    put('"')
    if (kind.precision <= 18 && kind.scale > 0) {
      val unscaled = value.toUnscaledLong
      if (unscaled < 0) put('-')
      val size = math.abs(unscaled)
      val unit = WireEncoder.powers(kind.scale)
      long(size / unit)
      put('.')
      val from = n
      var left = size % unit
      room(kind.scale)
      n += kind.scale
      var k = n - 1
      while (k >= from) { out(k) = ('0' + left % 10).toByte; left /= 10; k -= 1 }
    } else put(value.toJavaBigDecimal.setScale(kind.scale).toPlainString)
    put('"')
  }

  /** JSON has no NaN and no infinity. */
  private def double(value: Double): Unit =
    if (value.isNaN || value.isInfinite) put("null")
    else if (value == Math.rint(value) && math.abs(value) < 1e15 && !(value == 0 && 1 / value < 0)) { long(value.toLong); put(".0") }
    else put(java.lang.Double.toString(value))

  private def long(value: Long): Unit =
    if (value == Long.MinValue) put(value.toString)
    else {
      room(20)
      var left = value
      if (left < 0) { out(n) = '-'; n += 1; left = -left }
      var digits = 1
      while (digits < 19 && left >= WireEncoder.powers(digits)) digits += 1
      var k = n + digits - 1
      while (k >= n) { out(k) = ('0' + left % 10).toByte; left /= 10; k -= 1 }
      n += digits
    }

  private def quoted(text: Array[Byte]): Unit = {
    room(text.length + 2)
    put('"')
    var i = 0
    while (i < text.length) {
      val c = text(i)
      if (c == '"' || c == '\\') { put('\\'); put(c.toChar) }
      else if (c >= 0x20 || c < 0) { room(1); out(n) = c; n += 1 }
      else {
        val short = "\b\f\n\r\t".indexOf(c.toInt)
        if (short >= 0) { put('\\'); put("bfnrt".charAt(short)) } else put(f"\\u${c.toInt}%04x")
      }
      i += 1
    }
    put('"')
  }

  private def room(more: Int): Unit =
    if (n + more > out.length) out = java.util.Arrays.copyOf(out, math.max(out.length * 2, n + more))

  private def put(c: Char): Unit = { room(1); out(n) = c.toByte; n += 1 }
  private def put(bytes: Array[Byte]): Unit = { room(bytes.length); System.arraycopy(bytes, 0, out, n, bytes.length); n += bytes.length }
  private def put(ascii: String): Unit = { var i = 0; while (i < ascii.length) { put(ascii.charAt(i)); i += 1 } }
  private def take(): Array[Byte] = java.util.Arrays.copyOf(out, n)
}

object WireEncoder {
  private val powers: Array[Long] = Array.iterate(1L, 19)(_ * 10)
}
