/** Sums and means: exact for ints and decimals, compensated for floats (rule D5). */
package headrace.steps

import java.math.BigInteger

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.Decimal

/** How many, and their total: 128 bits in two halves, which no number of longs can fill; for longer numbers `wide`. */
final class Total {
  var n = 0L
  var high = 0L
  var low = 0L
  var wide: BigInteger = _

  def plus(value: Long): Unit = plus(value >> 63, value)

  def plus(otherHigh: Long, otherLow: Long): Unit = {
    low += otherLow
    high += otherHigh + (if (java.lang.Long.compareUnsigned(low, otherLow) < 0) 1 else 0)
  }

  def minus(value: Long): Unit = {
    high -= (value >> 63) + (if (java.lang.Long.compareUnsigned(low, value) < 0) 1 else 0)
    low -= value
  }

  def short: Boolean = wide == null && high == low >> 63

  def whole: BigInteger =
    if (wide != null) wide
    else if (short) BigInteger.valueOf(low)
    else BigInteger.valueOf(high).shiftLeft(64).add(new BigInteger(java.lang.Long.toUnsignedString(low)))
}

/** Ints and decimals, exact. A total that its type cannot hold is null, never wrapped. */
class ExactSum(at: Int, of: Kind, precision: Int) extends Algebra[Total](at) {
  private val decimal = of match { case exact: Kind.Exact => exact; case _ => null }
  private val long = decimal == null || decimal.short // the argument's whole units fit 64 bits
  protected val scale: Int = if (decimal == null) 0 else decimal.scale
  private val greatest = if (precision > 0) BigInteger.TEN.pow(precision).subtract(BigInteger.ONE) else null

  override def removable: Boolean = true

  def empty(): Total = {
    val state = new Total
    if (!long) state.wide = BigInteger.ZERO
    state
  }

  def add(state: Total, row: Row): Unit = if (!row.args.isNullAt(at)) {
    state.n += 1
    if (long) state.plus(units(row.args)) else state.wide = state.wide.add(wideUnits(row.args))
  }

  def merge(into: Total, other: Total): Unit = {
    into.n += other.n
    if (long) into.plus(other.high, other.low) else into.wide = into.wide.add(other.wide)
  }

  override def remove(state: Total, args: InternalRow): Unit = if (!args.isNullAt(at)) {
    state.n -= 1
    if (long) state.minus(units(args)) else state.wide = state.wide.subtract(wideUnits(args))
  }

  private def units(args: InternalRow): Long =
    if (decimal == null) args.getLong(at) else args.getDecimal(at, decimal.precision, scale).toUnscaledLong

  private def wideUnits(args: InternalRow): BigInteger = decimal.unscaled(decimal.get(args, at))

  /** Only numbers of more than 64 bits can take a total out of 128 bits. */
  def canOverflow: Boolean = !long

  def overflows(state: Total, row: Row): Boolean = !row.args.isNullAt(at) &&
    (if (state == null) BigInteger.ZERO else state.wide).add(wideUnits(row.args)).bitLength > 127

  def value(state: Total): Any =
    if (state.n == 0) null
    else if (precision == 0) { if (state.short) state.low else null }
    else fitting(state.whole, scale)

  protected def fitting(units: BigInteger, scale: Int): Any =
    if (units.abs.compareTo(greatest) > 0) null else Decimal(new java.math.BigDecimal(units, scale), precision, scale)

  def write(state: Total, out: BlobWriter): Unit = {
    out.long(state.n)
    if (!long) out.binary(state.wide.toByteArray)
    else {
      out.bool(state.short)
      out.long(state.low)
      if (!state.short) out.long(state.high)
    }
  }

  def read(in: BlobReader): Total = {
    val state = new Total
    state.n = in.long()
    if (!long) state.wide = new BigInteger(in.binary())
    else {
      val short = in.bool()
      state.low = in.long()
      state.high = if (short) state.low >> 63 else in.long()
    }
    state
  }

  override def width: Int = if (long) 3 else 0

  override def load(state: Total, words: Array[Long], from: Int): Unit = {
    state.n = words(from)
    state.high = words(from + 1)
    state.low = words(from + 2)
  }

  override def store(state: Total, words: Array[Long], from: Int): Unit = {
    words(from) = state.n
    words(from + 1) = state.high
    words(from + 2) = state.low
  }
}

/** The mean with four more digits than the argument, rounded half up (away from zero). */
final class DecimalAvg(at: Int, of: Kind, precision: Int) extends ExactSum(at, of, precision) {
  override def value(state: Total): Any = if (state.n == 0) null else {
    val total = state.whole
    val count = BigInteger.valueOf(state.n)
    val half = total.abs.multiply(BigInteger.valueOf(20000)).add(count).divide(count.shiftLeft(1))
    fitting(if (total.signum < 0) half.negate else half, scale + 4)
  }
}

/** The mean of ints, a float. */
final class IntAvg(at: Int, of: Kind) extends ExactSum(at, of, 0) {
  override def value(state: Total): Any =
    if (state.n == 0) null else (if (state.short) state.low.toDouble else state.whole.doubleValue) / state.n.toDouble
}

final class Compensated {
  var n = 0L
  var total = 0.0
  var lost = 0.0 // to rounding
}

/** Floats, compensated (Neumaier), so that order and merging hardly show. */
class FloatSum(at: Int) extends Algebra[Compensated](at) {
  def empty(): Compensated = new Compensated

  def add(state: Compensated, row: Row): Unit = if (!row.args.isNullAt(at)) {
    state.n += 1
    plus(state, row.args.getDouble(at))
  }

  def merge(into: Compensated, other: Compensated): Unit = {
    into.n += other.n
    plus(into, other.total)
    into.lost += other.lost
  }

  private def plus(state: Compensated, value: Double): Unit = {
    val total = state.total + value
    state.lost += (if (Math.abs(state.total) >= Math.abs(value)) (state.total - total) + value else (value - total) + state.total)
    state.total = total
  }

  def value(state: Compensated): Any = if (state.n == 0) null else finite(state.total + state.lost)

  protected def finite(value: Double): Any = if (java.lang.Double.isFinite(value)) value else null

  def write(state: Compensated, out: BlobWriter): Unit = {
    out.long(state.n)
    out.double(state.total)
    out.double(state.lost)
  }

  def read(in: BlobReader): Compensated = {
    val state = new Compensated
    state.n = in.long()
    state.total = in.double()
    state.lost = in.double()
    state
  }

  override def width: Int = 3

  override def load(state: Compensated, words: Array[Long], from: Int): Unit = {
    state.n = words(from)
    state.total = java.lang.Double.longBitsToDouble(words(from + 1))
    state.lost = java.lang.Double.longBitsToDouble(words(from + 2))
  }

  override def store(state: Compensated, words: Array[Long], from: Int): Unit = {
    words(from) = state.n
    words(from + 1) = java.lang.Double.doubleToRawLongBits(state.total)
    words(from + 2) = java.lang.Double.doubleToRawLongBits(state.lost)
  }
}

final class FloatAvg(at: Int) extends FloatSum(at) {
  override def value(state: Compensated): Any =
    if (state.n == 0) null else finite((state.total + state.lost) / state.n.toDouble)
}
