/** DDSketch: quantiles within 1 % of the value, from buckets whose width grows with the value.
  *
  * Bucket i holds the values in (GAMMA^(i-1), GAMMA^i]. At most 2,048 buckets a side: that covers 17 powers of ten;
  * beyond it the buckets nearest to zero are put together, so that the great values stay exact within 1 %.
  * The least and the greatest value are kept as they are: the quantiles 0 and 1, and those of one value, are exact. */
package headrace.steps

import java.util.TreeMap

final class DdSketch {
  import DdSketch._

  private var count = 0L
  private var zeros = 0L
  private var least = Double.PositiveInfinity
  private var greatest = Double.NegativeInfinity
  private val above = new Buckets // positive values, by index
  private val below = new Buckets // negative values, by index of their magnitude

  def add(value: Double): Unit = {
    count += 1
    if (value < least) least = value
    if (value > greatest) greatest = value
    if (value > TINY) put(above, Math.ceil(Math.log(value) / LOG_GAMMA).toInt, 1)
    else if (value < -TINY) put(below, Math.ceil(Math.log(-value) / LOG_GAMMA).toInt, 1)
    else zeros += 1
  }

  def merge(other: DdSketch): Unit = {
    count += other.count
    zeros += other.zeros
    if (other.least < least) least = other.least
    if (other.greatest > greatest) greatest = other.greatest
    other.above.forEach((index, n) => put(above, index, n))
    other.below.forEach((index, n) => put(below, index, n))
  }

  /** The nearest rank: the least value that at least q of all values do not exceed; null of nothing. */
  def quantile(q: Double): Any = {
    if (count == 0) return null
    val rank = Math.max(0L, Math.ceil(q * count - DdSketch.ROUNDING).toLong - 1)
    if (rank == 0) least
    else if (rank == count - 1) greatest
    else Math.min(Math.max(at(rank), least), greatest)
  }

  private def at(rank: Long): Double = {
    var seen = 0L
    val negative = below.descendingMap.entrySet.iterator
    while (negative.hasNext) {
      val bucket = negative.next()
      seen += bucket.getValue
      if (seen > rank) return -middle(bucket.getKey)
    }
    seen += zeros
    if (seen > rank) return 0.0
    val positive = above.entrySet.iterator
    while (positive.hasNext) {
      val bucket = positive.next()
      seen += bucket.getValue
      if (seen > rank) return middle(bucket.getKey)
    }
    greatest
  }

  def write(out: BlobWriter): Unit = {
    out.long(count)
    if (count > 0) {
      out.long(zeros)
      out.double(least)
      out.double(greatest)
      writeBuckets(above, out)
      writeBuckets(below, out)
    }
  }

  def read(in: BlobReader): this.type = {
    count = in.long()
    if (count > 0) {
      zeros = in.long()
      least = in.double()
      greatest = in.double()
      readBuckets(above, in)
      readBuckets(below, in)
    }
    this
  }
}

object DdSketch {
  private type Buckets = TreeMap[Integer, java.lang.Long]

  private val ERROR = 0.01
  private val GAMMA = (1.0 + ERROR) / (1.0 - ERROR)
  private val LOG_GAMMA = Math.log(GAMMA)
  private val BUCKETS = 2048
  val ROUNDING = 1e-9 // 0.07 * 100 is a little more than 7
  private val TINY = 1e-12 // nearer to zero than this is zero

  /** The value no further than 1 % from both ends of the bucket. */
  private def middle(index: Int): Double = 2.0 * Math.exp(index * LOG_GAMMA) / (GAMMA + 1.0)

  private def put(buckets: Buckets, index: Integer, count: java.lang.Long): Unit = {
    buckets.merge(index, count, (a, b) => a + b)
    if (buckets.size > BUCKETS) {
      val moved = buckets.pollFirstEntry.getValue
      buckets.merge(buckets.firstKey, moved, (a, b) => a + b)
    }
  }

  private def writeBuckets(buckets: Buckets, out: BlobWriter): Unit = {
    out.long(buckets.size)
    var last = 0
    buckets.forEach { (index, n) =>
      out.long(index - last)
      out.long(n)
      last = index
    }
  }

  private def readBuckets(buckets: Buckets, in: BlobReader): Unit = {
    var left = in.int()
    var index = 0
    while (left > 0) {
      index += in.int()
      buckets.put(index, in.long())
      left -= 1
    }
  }
}
