/** The spread of values around their mean: the standard deviation of a sample, null for fewer than two.
  *
  * Ints and decimals exactly, up to the last root: by how many, their sum and the sum of their squares, which can be taken
  * back. Floats by Welford's way, in which the mean is known as values come; merged by Chan's. */
package headrace.steps

import java.math.BigInteger

import org.apache.spark.sql.catalyst.InternalRow

final class Moments {
  var n = 0L
  var total: BigInteger = BigInteger.ZERO
  var squares: BigInteger = BigInteger.ZERO
}

/** Of whole units of a scale. */
final class ExactSpread(at: Int, of: Kind) extends Algebra[Moments](at) {
  private val decimal = of match { case exact: Kind.Exact => exact; case _ => null }
  private val unit = Math.pow(10.0, if (decimal == null) 0 else decimal.scale)

  override def removable: Boolean = true
  def empty(): Moments = new Moments

  def add(state: Moments, row: Row): Unit = if (!row.args.isNullAt(at)) {
    val value = units(row.args)
    state.n += 1
    state.total = state.total.add(value)
    state.squares = state.squares.add(value.multiply(value))
  }

  def merge(into: Moments, other: Moments): Unit = {
    into.n += other.n
    into.total = into.total.add(other.total)
    into.squares = into.squares.add(other.squares)
  }

  override def remove(state: Moments, args: InternalRow): Unit = if (!args.isNullAt(at)) {
    val value = units(args)
    state.n -= 1
    state.total = state.total.subtract(value)
    state.squares = state.squares.subtract(value.multiply(value))
  }

  private def units(args: InternalRow): BigInteger =
    if (decimal == null) BigInteger.valueOf(args.getLong(at)) else decimal.unscaled(decimal.get(args, at))

  def value(state: Moments): Any = if (state.n < 2) null else {
    val n = BigInteger.valueOf(state.n)
    val far = n.multiply(state.squares).subtract(state.total.multiply(state.total))
    Math.sqrt(far.doubleValue / n.multiply(n.subtract(BigInteger.ONE)).doubleValue) / unit
  }

  def write(state: Moments, out: BlobWriter): Unit = {
    out.long(state.n)
    out.binary(state.total.toByteArray)
    out.binary(state.squares.toByteArray)
  }

  def read(in: BlobReader): Moments = {
    val state = new Moments
    state.n = in.long()
    state.total = new BigInteger(in.binary())
    state.squares = new BigInteger(in.binary())
    state
  }
}

final class Deviations {
  var n = 0L
  var mean = 0.0
  var squares = 0.0 // of distances from it
}

final class FloatSpread(at: Int) extends Algebra[Deviations](at) {
  def empty(): Deviations = new Deviations

  def add(state: Deviations, row: Row): Unit = if (!row.args.isNullAt(at)) {
    val value = row.args.getDouble(at)
    val far = value - state.mean
    state.n += 1
    state.mean += far / state.n.toDouble
    state.squares += far * (value - state.mean)
  }

  def merge(into: Deviations, other: Deviations): Unit = if (into.n == 0) {
    into.n = other.n
    into.mean = other.mean
    into.squares = other.squares
  } else if (other.n > 0) {
    val n = into.n + other.n
    val far = other.mean - into.mean
    val share = other.n.toDouble / n.toDouble
    into.mean += far * share
    into.squares = into.squares + other.squares + far * far * into.n.toDouble * share
    into.n = n
  }

  def value(state: Deviations): Any =
    if (state.n > 1 && java.lang.Double.isFinite(state.squares)) Math.sqrt(state.squares / (state.n - 1).toDouble) else null

  def write(state: Deviations, out: BlobWriter): Unit = {
    out.long(state.n)
    out.double(state.mean)
    out.double(state.squares)
  }

  def read(in: BlobReader): Deviations = {
    val state = new Deviations
    state.n = in.long()
    state.mean = in.double()
    state.squares = in.double()
    state
  }
}
