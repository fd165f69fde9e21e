/** From the wire (rule F1): a JSON object to typed columns, in one pass over its bytes. */
package headrace

import java.util.Base64

import scala.collection.mutable.ArrayBuffer
import scala.util.control.NoStackTrace

import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types.Decimal

/** Why a record goes to dead letters: a reason, and after a colon the details (rule B1). */
class Dead(val reason: String, val detail: String) extends Exception(s"$reason: $detail") with NoStackTrace

/** Decodes values of one event. `row` is reused: it holds the last value until the next call. */
final class WireDecoder(fields: Array[Field], required: Map[String, String], json: JsonScanner = new JsonScanner) {
  /** Per field the reason if it is absent: "missing-key", "missing-id", "missing-time" or "schema". */
  private val absent = fields.map(f => required.getOrElse(f.name, if (f.nullable) null else "schema"))
  val row = new SpecificInternalRow(fields.toSeq.map(_.kind.spark))

  /** Fills `row`, or throws Dead. Fields that are not known are checked and passed over: writers may upgrade first. */
  def decode(value: Array[Byte]): Unit = {
    json.reset(value)
    try {
      if (json.peek() != '{') { json.skip(); json.ended(); throw new Dead("undecodable", "the value is no JSON object") }
      members()
      json.ended()
    } catch { case m: Malformed => throw new Dead("undecodable", m.getMessage) }
    check()
  }

  /** The same for an object inside of a value: the one at which the scanner stands. */
  def within(): Unit = { members(); check() }

  private def check(): Unit = {
    var i = 0
    while (i < fields.length) {
      if (row.isNullAt(i) && absent(i) != null) throw new Dead(absent(i), s"field ${fields(i).name} is missing")
      i += 1
    }
  }

  private def members(): Unit = {
    var i = 0
    while (i < fields.length) { row.setNullAt(i); i += 1 }
    json.expect('{')
    if (json.accept('}')) return
    var guess = 0 // writers keep their order: the next field is mostly the one after the last
    do {
      json.string()
      val at = field(guess)
      json.expect(':')
      if (at < 0) skip() else { value(at); guess = at + 1 }
    } while (json.accept(','))
    json.expect('}')
  }

  private def field(guess: Int): Int = {
    val b = json.plain()
    val length = json.end - json.start
    if (guess < fields.length && same(b, length, fields(guess).utf8)) return guess
    var i = 0
    while (i < fields.length) { if (same(b, length, fields(i).utf8)) return i; i += 1 }
    -1
  }

  private def same(b: Array[Byte], length: Int, name: Array[Byte]): Boolean =
    length == name.length && java.util.Arrays.equals(b, json.start, json.end, name, 0, length)

  private def skip(): Unit = { refuseNan("a field that is not known"); json.skip() }

  /** Python's json writes these although JSON has them not; the reason should say more than "no JSON". */
  private def refuseNan(where: String): Unit = {
    val c = json.peek()
    if ((c == 'N' && json.looking("NaN")) || (c == 'I' && json.looking("Infinity")) || (c == '-' && json.looking("-Infinity")))
      throw new Dead("nan", s"$where is not a finite number")
  }

  private def value(at: Int): Unit = {
    val f = fields(at)
    if (json.peek() == 'n') { json.word("null"); row.setNullAt(at) }
    else f.kind match {
      case TextKind => string(f); row.update(at, json.text())
      case IntKind => row.setLong(at, int(f))
      case DecimalKind(precision, scale) => row.update(at, decimal(f, precision, scale))
      case TimeKind => row.setLong(at, time(f))
      case FloatKind => row.setDouble(at, float(f))
      case BoolKind => row.setBoolean(at, bool(f))
      case BytesKind => row.update(at, bytes(f))
      case ListKind(item) => row.update(at, list(f, item))
    }
  }

  private def wrong(f: Field): Nothing = throw new Dead("schema", s"field ${f.name} is not ${f.kind.name}")

  /** The kind is wrong, but is it JSON at all? That error comes first. */
  private def other(f: Field): Nothing = { refuseNan(s"field ${f.name}"); json.skip(); wrong(f) }

  private def string(f: Field): Unit = if (json.peek() == '"') json.string() else other(f)

  private def number(f: Field): Unit = {
    val c = json.peek()
    if (c == '-' && json.looking("-Infinity") || c != '-' && (c < '0' || c > '9')) other(f)
    json.number()
  }

  private def bool(f: Field): Boolean = json.peek() match {
    case 't' => json.word("true"); true
    case 'f' => json.word("false"); false
    case _ => other(f)
  }

  private def int(f: Field): Long = {
    number(f)
    if (!json.whole) wrong(f)
    Numbers.long(json.bytes, json.start, json.end, () => wrong(f))
  }

  private def float(f: Field): Double = {
    number(f)
    val found = Numbers.double(json.bytes, json.start, json.end)
    if (found.isInfinite) throw new Dead("nan", s"field ${f.name} is not a finite number") else found
  }

  /** Money is text; a bare number is taken as the decimal it is written as. */
  private def decimal(f: Field, precision: Int, scale: Int): Decimal = {
    val b = if (json.peek() == '"') { json.string(); json.plain() } else { number(f); json.bytes }
    val found = Numbers.decimal(b, json.start, json.end, precision, scale)
    if (found == null) {
      val text = new String(b, json.start, math.min(json.end - json.start, 60), java.nio.charset.StandardCharsets.UTF_8)
      throw new Dead(if (Numbers.notFinite(text)) "nan" else "schema", s"field ${f.name}: '$text' is not ${f.kind.name}")
    }
    found
  }

  private def time(f: Field): Long = {
    string(f)
    val b = json.plain()
    val found = WireTime.parse(b, json.start, json.end)
    if (found == WireTime.None) wrong(f) else found
  }

  private def bytes(f: Field): Array[Byte] = {
    string(f)
    val b = json.plain()
    val length = json.end - json.start
    if (length % 4 != 0) wrong(f) // Java's decoder would take text without padding
    try Base64.getDecoder.decode(java.util.Arrays.copyOfRange(b, json.start, json.end))
    catch { case _: IllegalArgumentException => wrong(f) }
  }

  private def list(f: Field, item: Kind): GenericArrayData = {
    if (json.peek() != '[') other(f)
    json.expect('[')
    val found = new ArrayBuffer[Any]
    if (!json.accept(']')) {
      do found += element(f, item) while (json.accept(','))
      json.expect(']')
    }
    new GenericArrayData(found.toArray)
  }

  private def element(f: Field, item: Kind): Any = item match {
    case TextKind => string(f); json.text()
    case IntKind => int(f)
    case DecimalKind(precision, scale) => decimal(f, precision, scale)
    case TimeKind => time(f)
    case FloatKind => float(f)
    case BoolKind => bool(f)
    case BytesKind => bytes(f)
    case ListKind(_) => wrong(f)
  }
}
