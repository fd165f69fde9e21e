/** Numbers from their text, straight from bytes: the common short ones without objects, the others by Java's own. */
package headrace

import java.math.{BigDecimal, RoundingMode}
import java.nio.charset.StandardCharsets.ISO_8859_1

import org.apache.spark.sql.types.Decimal

object Numbers {
  private val powers: Array[Long] = Array.iterate(1L, 19)(_ * 10)
  private val exactPowers: Array[Double] = Array.iterate(1.0, 23)(_ * 10) // those a double holds exactly

  private def text(b: Array[Byte], start: Int, end: Int): String = new String(b, start, end - start, ISO_8859_1)

  /** A JSON integer of 64 bits. */
  def long(b: Array[Byte], start: Int, end: Int, tooLarge: () => Nothing): Long =
    if (end - start > 18) try text(b, start, end).toLong catch { case _: NumberFormatException => tooLarge() }
    else {
      val negative = b(start) == '-'
      var k = if (negative) start + 1 else start
      var found = 0L
      while (k < end) { found = found * 10 + (b(k) - '0'); k += 1 }
      if (negative) -found else found
    }

  /** A JSON number. Up to 15 digits over an exact power of ten, one division rounds as the standard wants. */
  def double(b: Array[Byte], start: Int, end: Int): Double = {
    val negative = b(start) == '-'
    var k = if (negative) start + 1 else start
    var digits = 0L
    var count = 0
    var after = -1
    while (k < end) {
      val c = b(k)
      if (c == '.') after = 0
      else if (c >= '0' && c <= '9') { digits = digits * 10 + (c - '0'); count += 1; if (after >= 0) after += 1 }
      else count = 99 // an exponent
      if (count > 15) return text(b, start, end).toDouble
      k += 1
    }
    val found = if (after > 0) digits / exactPowers(after) else digits.toDouble
    if (negative) -found else found
  }

  /** A decimal with at most `scale` digits after the point, exactly; null if it is none or does not fit. */
  def decimal(b: Array[Byte], start: Int, end: Int, precision: Int, scale: Int): Decimal = {
    val negative = start < end && b(start) == '-'
    var k = if (negative) start + 1 else start
    var digits = 0L
    var count = 0
    var after = -1
    var plain = k < end
    while (k < end && plain) {
      val c = b(k)
      if (c == '.' && after < 0 && count > 0) after = 0
      else if (c >= '0' && c <= '9') { digits = digits * 10 + (c - '0'); count += 1; if (after >= 0) after += 1 }
      else plain = false
      if (count > 17) plain = false
      k += 1
    }
    val missing = scale - math.max(after, 0)
    if (!plain || count == 0 || after == 0 || missing < 0 || count + missing > 18 || precision > 18)
      return slow(text(b, start, end), precision, scale)
    val unscaled = digits * powers(missing)
    if (unscaled >= powers(precision)) null
    else Decimal.createUnsafe(if (negative) -unscaled else unscaled, precision, scale)
  }

  private val shape = """[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?""".r

  private def slow(written: String, precision: Int, scale: Int): Decimal = {
    val trimmed = written.trim
    if (trimmed.length > 400 || !shape.matches(trimmed)) return null
    try {
      val found = new BigDecimal(trimmed)
      // A huge exponent would make setScale build a number of that many digits.
      if (found.signum != 0 && found.precision.toLong - found.scale > precision - scale) return null
      val exact = found.setScale(scale, RoundingMode.UNNECESSARY)
      if (exact.precision > precision) null else Decimal(exact, precision, scale)
    } catch { case _: ArithmeticException => null }
  }

  def notFinite(text: String): Boolean = {
    val bare = text.trim.toLowerCase.stripPrefix("-").stripPrefix("+")
    bare == "nan" || bare == "inf" || bare == "infinity" || bare == "snan"
  }
}
