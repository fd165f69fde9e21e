/** Times on the wire: RFC 3339 text to microseconds since the epoch and back, without objects between. */
package headrace

object WireTime {
  /** No time: what `parse` gives for text that is none. */
  val None: Long = Long.MinValue
  private val First = -62135596800000000L // 0001-01-01T00:00:00Z, the first that Python knows
  private val Last = 253402300799999999L  // 9999-12-31T23:59:59.999999Z
  private val Month = Array(31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

  /** Reads `2026-11-03T15:00:00.000000Z`; an offset is required; further digits of a second are rounded. */
  def parse(b: Array[Byte], start: Int, end: Int): Long = {
    if (end - start < 20 || b(start + 4) != '-' || b(start + 7) != '-' || b(start + 13) != ':' || b(start + 16) != ':') return None
    val between = b(start + 10)
    if (between != 'T' && between != 't' && between != ' ') return None
    val year = two(b, start) * 100 + two(b, start + 2)
    val month = two(b, start + 5)
    val day = two(b, start + 8)
    val hour = two(b, start + 11)
    val minute = two(b, start + 14)
    val second = two(b, start + 17)
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > Month(month - 1)) return None
    if (month == 2 && day == 29 && (year % 4 != 0 || (year % 100 == 0 && year % 400 != 0))) return None
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return None
    var k = start + 19
    var micros = 0L
    if (b(k) == '.') {
      k += 1
      val from = k
      var weight = 100000L
      while (k < end && b(k) >= '0' && b(k) <= '9') {
        val d = b(k) - '0'
        if (weight > 0) micros += d * weight else if (k - from == 6 && d >= 5) micros += 1
        weight /= 10
        k += 1
      }
      if (k == from) return None
    }
    val zone = offset(b, k, end)
    if (zone == Int.MinValue) return None
    val seconds = (days(year, month, day) * 24 + hour) * 3600L + minute * 60L + second - zone * 60L
    val found = seconds * 1000000L + micros
    if (found < First || found > Last) None else found
  }

  private def two(b: Array[Byte], k: Int): Int = {
    val (x, y) = (b(k) - '0', b(k + 1) - '0')
    if (x < 0 || x > 9 || y < 0 || y > 9) -10000 else x * 10 + y
  }

  /** Minutes east of UTC, from `Z`, `+02:00` or `+0200`; Int.MinValue if there is none. */
  private def offset(b: Array[Byte], k: Int, end: Int): Int = {
    if (k + 1 == end && (b(k) == 'Z' || b(k) == 'z')) return 0
    if (end - k < 5 || (b(k) != '+' && b(k) != '-')) return Int.MinValue
    val minutesAt = if (b(k + 3) == ':') k + 4 else k + 3
    if (end != minutesAt + 2) return Int.MinValue
    val hours = two(b, k + 1)
    val minutes = two(b, minutesAt)
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return Int.MinValue
    if (b(k) == '-') -(hours * 60 + minutes) else hours * 60 + minutes
  }

  /** Days since 1970-01-01 of a date in the Gregorian calendar: eras of 400 years that begin in March. */
  private def days(year: Int, month: Int, day: Int): Long = {
    val y = if (month <= 2) year - 1 else year
    val era = Math.floorDiv(y, 400)
    val ofEra = y - era * 400
    val ofYear = (153 * (month + (if (month > 2) -3 else 9)) + 2) / 5 + day - 1
    era * 146097L + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719468
  }

  /** Writes the 27 bytes of `2026-11-03T15:00:00.000000Z` at `at`. */
  def write(micros: Long, out: Array[Byte], at: Int): Unit = {
    val day = Math.floorDiv(micros, 86400000000L)
    val ofDay = Math.floorMod(micros, 86400000000L)
    val z = day + 719468
    val era = Math.floorDiv(z, 146097L)
    val ofEra = (z - era * 146097).toInt
    val yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36524 - ofEra / 146096) / 365
    val ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    val m = (5 * ofYear + 2) / 153
    val month = if (m < 10) m + 3 else m - 9
    val year = (yearOfEra + era * 400).toInt + (if (month <= 2) 1 else 0)
    digits(year.toLong, 4, out, at)
    out(at + 4) = '-'
    digits(month.toLong, 2, out, at + 5)
    out(at + 7) = '-'
    digits((ofYear - (153 * m + 2) / 5 + 1).toLong, 2, out, at + 8)
    out(at + 10) = 'T'
    digits(ofDay / 3600000000L, 2, out, at + 11)
    out(at + 13) = ':'
    digits(ofDay / 60000000L % 60, 2, out, at + 14)
    out(at + 16) = ':'
    digits(ofDay / 1000000L % 60, 2, out, at + 17)
    out(at + 19) = '.'
    digits(ofDay % 1000000L, 6, out, at + 20)
    out(at + 26) = 'Z'
  }

  val Length = 27

  private def digits(value: Long, count: Int, out: Array[Byte], at: Int): Unit = {
    var left = value
    var k = at + count - 1
    while (k >= at) { out(k) = ('0' + left % 10).toByte; left /= 10; k -= 1 }
  }

  def show(micros: Long): String = { val out = new Array[Byte](Length); write(micros, out, 0); new String(out) }
}
