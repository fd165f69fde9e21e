/** What a vector was told of, as text: of each partition the last row, and a sum over all rows that tells sets apart. */
package headrace.steps

import java.nio.charset.StandardCharsets.UTF_8
import java.util.HexFormat

/** Where a row came from. `mark`: its part of the sum. */
final class Place(val src: Int, val part: Int, val off: Long, val mark: Long) {
  def write(out: BlobWriter): Unit = {
    out.long(src)
    out.long(part)
    out.long(off)
    out.fixed(mark)
  }
}

object Place {
  def of(row: Row, topics: Array[String]): Place =
    new Place(row.src, row.part, row.off, Hll.hash64(Cause.of(row, topics).getBytes(UTF_8)))

  def read(in: BlobReader): Place = new Place(in.int(), in.int(), in.long(), in.fixed())
}

/** Gathers the rows of one vector. `topics`: by source number, sorted. */
final class SeenRows(topics: Array[String]) {
  private val last = new java.util.TreeMap[Long, Long] // by source and partition
  private var sum = 0L

  def clear(): Unit = {
    last.clear()
    sum = 0
  }

  def add(one: Place): Unit = {
    sum += one.mark
    if (one.src < topics.length) last.merge((one.src.toLong << 32) | one.part, one.off, (a, b) => Math.max(a, b))
  }

  def merge(other: SeenRows): Unit = {
    sum += other.sum
    other.last.forEach((at, off) => last.merge(at, off, (a, b) => Math.max(a, b)))
  }

  def write(out: BlobWriter): Unit = {
    out.fixed(sum)
    out.long(last.size)
    last.forEach { (at, off) =>
      out.long(at)
      out.long(off)
    }
  }

  def read(in: BlobReader): SeenRows = {
    sum = in.fixed()
    var left = in.int()
    while (left > 0) {
      last.put(in.long(), in.long())
      left -= 1
    }
    this
  }

  def text: String = {
    val said = new StringBuilder
    last.forEach((at, off) => said.append(topics((at >> 32).toInt)).append('/').append(at.toInt).append('@').append(off).append(' '))
    said.append('#').append(HexFormat.of().toHexDigits(sum)).toString
  }
}
