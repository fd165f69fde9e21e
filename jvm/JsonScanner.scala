/** Walks over JSON bytes once, strictly (RFC 8259), and hands out slices instead of objects. */
package headrace

import scala.util.control.NoStackTrace

import org.apache.spark.unsafe.types.UTF8String

/** The bytes are no JSON. */
class Malformed(what: String, at: Int) extends Exception(s"$what at byte $at") with NoStackTrace

/** One scanner serves many values: `reset` points it at the next. After `string` or `number`, [start, end) is the
  * slice without its quotes. */
final class JsonScanner {
  private var b: Array[Byte] = _
  private var i = 0
  private var depth = 0
  var start = 0
  var end = 0
  /** Of the last string: holds it a backslash, a byte beyond ASCII? */
  var escaped = false
  var wide = false
  /** Of the last number: has it neither fraction nor exponent? */
  var whole = false

  def bytes: Array[Byte] = b

  def reset(bytes: Array[Byte]): Unit = { b = bytes; i = 0; depth = 0 }

  def fail(what: String): Nothing = throw new Malformed(what, i)

  /** The next byte that is not white space, not consumed; 0 at the end. */
  def peek(): Byte = {
    while (i < b.length && (b(i) == ' ' || b(i) == '\n' || b(i) == '\r' || b(i) == '\t')) i += 1
    if (i < b.length) b(i) else 0
  }

  def expect(c: Char): Unit = if (peek() == c) i += 1 else fail(s"expected '$c'")

  /** Consumes `c` if it comes next. */
  def accept(c: Char): Boolean = if (peek() == c) { i += 1; true } else false

  def ended(): Unit = if (peek() != 0 || i < b.length) fail("trailing characters")

  def word(text: String): Unit = {
    var k = 0
    while (k < text.length) { if (i >= b.length || b(i) != text.charAt(k)) fail(s"expected $text"); i += 1; k += 1 }
  }

  /** Does `text` come next? Consumes nothing. */
  def looking(text: String): Boolean = {
    var k = 0
    while (k < text.length && i + k < b.length && b(i + k) == text.charAt(k)) k += 1
    k == text.length
  }

  def string(): Unit = {
    expect('"')
    start = i
    escaped = false
    wide = false
    while (true) {
      if (i >= b.length) fail("a string that does not end")
      val c = b(i)
      if (c == '"') {
        end = i
        i += 1
        if (wide && !UTF8String.fromBytes(b, start, end - start).isValid) fail("a string that is not UTF-8")
        return
      }
      if (c == '\\') { escaped = true; i += 2 }
      else { if (c < 0) wide = true else if (c < 0x20) fail("a control character in a string"); i += 1 }
    }
  }

  /** The last string as bytes of UTF-8: the slice itself, or a copy with its escapes resolved. */
  def text(): UTF8String =
    if (!escaped) UTF8String.fromBytes(b, start, end - start)
    else { val (copy, n) = unescaped(); UTF8String.fromBytes(copy, 0, n) }

  /** Leaves the last string's content in [start, end) of the returned array; for parsers of plain text. */
  def plain(): Array[Byte] =
    if (!escaped) b else { val (copy, n) = unescaped(); start = 0; end = n; copy }

  private def unescaped(): (Array[Byte], Int) = {
    val out = new Array[Byte](end - start)
    var n = 0
    var k = start
    while (k < end) {
      if (b(k) != '\\') { out(n) = b(k); n += 1; k += 1 }
      else {
        val c = b(k + 1).toChar
        k += 2
        if (c == 'u') {
          var code = hex(k)
          k += 4
          if (Character.isHighSurrogate(code.toChar)) {
            val low = if (k + 6 <= end && b(k) == '\\' && b(k + 1) == 'u') hex(k + 2) else 0
            if (!Character.isLowSurrogate(low.toChar)) fail("half a surrogate pair")
            code = Character.toCodePoint(code.toChar, low.toChar)
            k += 6
          } else if (Character.isLowSurrogate(code.toChar)) fail("half a surrogate pair")
          n = utf8(code, out, n)
        } else {
          val at = "\"\\/bfnrt".indexOf(c.toInt)
          if (at < 0) fail("an unknown escape")
          out(n) = "\"\\/\b\f\n\r\t".charAt(at).toByte
          n += 1
        }
      }
    }
    (out, n)
  }

  private def hex(at: Int): Int = {
    if (at + 4 > end) fail("an unfinished escape")
    var code = 0
    var k = at
    while (k < at + 4) {
      val d = Character.digit(b(k).toInt, 16)
      if (d < 0) fail("an unknown escape")
      code = code * 16 + d
      k += 1
    }
    code
  }

  private def utf8(code: Int, out: Array[Byte], at: Int): Int = {
    val encoded = new String(Character.toChars(code)).getBytes(java.nio.charset.StandardCharsets.UTF_8)
    System.arraycopy(encoded, 0, out, at, encoded.length)
    at + encoded.length
  }

  def number(): Unit = {
    peek()
    start = i
    whole = true
    if (i < b.length && b(i) == '-') i += 1
    if (i < b.length && b(i) == '0') i += 1 else digits()
    if (i < b.length && b(i) == '.') { whole = false; i += 1; digits() }
    if (i < b.length && (b(i) == 'e' || b(i) == 'E')) {
      whole = false
      i += 1
      if (i < b.length && (b(i) == '+' || b(i) == '-')) i += 1
      digits()
    }
    if (i < b.length && b(i) >= '0' && b(i) <= '9') fail("a number with a leading zero")
    end = i
  }

  private def digits(): Unit = {
    val from = i
    while (i < b.length && b(i) >= '0' && b(i) <= '9') i += 1
    if (i == from) fail("expected a digit")
  }

  /** Passes over any value, checking it. */
  def skip(): Unit = peek() match {
    case '"' => string(); if (escaped) unescaped()
    case '{' =>
      nested {
        expect('{')
        if (!accept('}')) {
          do { string(); if (escaped) unescaped(); expect(':'); skip() } while (accept(','))
          expect('}')
        }
      }
    case '[' =>
      nested {
        expect('[')
        if (!accept(']')) { do skip() while (accept(',')); expect(']') }
      }
    case 't' => word("true")
    case 'f' => word("false")
    case 'n' => word("null")
    case _ => number()
  }

  /** Walks over the members of an object; `value` is called with each name and must consume what follows it. */
  def members(value: String => Unit): Unit = {
    expect('{')
    if (accept('}')) return
    do { string(); val name = text().toString; expect(':'); value(name) } while (accept(','))
    expect('}')
  }

  /** Bounded, because a stack is. */
  private def nested(body: => Unit): Unit = {
    depth += 1
    if (depth > JsonScanner.Deepest) fail(s"more than ${JsonScanner.Deepest} levels")
    body
    depth -= 1
  }
}

object JsonScanner { val Deepest = 512 }
