/** Rows that a step keeps for one key, in order R2. Kept bytes are decoded as far as they are asked for: most keys have
  * one or two rows, but a busy one has hundreds, of which a batch touches a few. */
package headrace.steps

import java.util.Arrays

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

/** `columns`: how many a row has. */
final class Entries(columns: Int) {
  private var count = 0
  private var times = new Array[Long](Entries.FEW)
  private var flags = new Array[Byte](Entries.FEW)
  private var rows = new Array[HeldRow](Entries.FEW) // null: still in the bytes
  private var places = new Array[Int](Entries.FEW) // of those: where in the bytes
  private var bytes: Array[Byte] = _

  def size: Int = count
  def isEmpty: Boolean = count == 0
  def time(at: Int): Long = times(at)
  def isTombstone(at: Int): Boolean = (flags(at) & Entries.TOMBSTONE) != 0

  /** A step's own mark. */
  def isMarked(at: Int): Boolean = (flags(at) & Entries.MARKED) != 0
  def mark(at: Int): Unit = flags(at) = (flags(at) | Entries.MARKED).toByte

  def apply(at: Int): HeldRow = {
    if (rows(at) == null) rows(at) = decoded(at)
    rows(at)
  }

  /** The first one that is not before this time. */
  def firstFrom(time: Long): Int = {
    var low = 0
    var high = count
    while (low < high) {
      val middle = (low + high) >>> 1
      if (times(middle) < time) low = middle + 1 else high = middle
    }
    low
  }

  /** The first one after this time. */
  def firstAfter(time: Long): Int = firstFrom(time + 1)

  def insert(row: HeldRow, marked: Boolean): Unit = {
    var at = firstAfter(row.time)
    while (at > 0 && times(at - 1) == row.time && apply(at - 1).compare(row) > 0) at -= 1
    room(count + 1)
    System.arraycopy(times, at, times, at + 1, count - at)
    System.arraycopy(flags, at, flags, at + 1, count - at)
    System.arraycopy(rows, at, rows, at + 1, count - at)
    System.arraycopy(places, at, places, at + 1, count - at)
    put(at, row.time, ((if (marked) Entries.MARKED else 0) | (if (row.args == null) Entries.TOMBSTONE else 0)).toByte, row, 0)
    count += 1
  }

  def dropFirst(gone: Int): Unit = if (gone > 0) {
    var i = gone
    while (i < count) {
      put(i - gone, times(i), flags(i), rows(i), places(i))
      i += 1
    }
    count -= gone
  }

  /** Gives how many there were. */
  def dropMarked(): Int = {
    var kept = 0
    var i = 0
    while (i < count) {
      if (!isMarked(i)) {
        put(kept, times(i), flags(i), rows(i), places(i))
        kept += 1
      }
      i += 1
    }
    val gone = count - kept
    count = kept
    gone
  }

  private def put(at: Int, time: Long, flag: Byte, row: HeldRow, place: Int): Unit = {
    times(at) = time
    flags(at) = flag
    rows(at) = row
    places(at) = place
  }

  private def room(wanted: Int): Unit = if (wanted > times.length) {
    val length = Math.max(wanted, times.length * 2)
    times = Arrays.copyOf(times, length)
    flags = Arrays.copyOf(flags, length)
    rows = Arrays.copyOf(rows, length)
    places = Arrays.copyOf(places, length)
  }

  /** Each one's time as the distance to the one before, its flags, then its place and its columns. */
  def write(out: BlobWriter): Unit = {
    out.long(count)
    var last = 0L
    var i = 0
    while (i < count) {
      out.long(times(i) - last)
      last = times(i)
      out.byte(flags(i))
      if (rows(i) != null) encode(rows(i), out)
      else copy(places(i), out)
      i += 1
    }
  }

  private def copy(place: Int, out: BlobWriter): Unit = {
    val in = new BlobReader(bytes, place)
    Entries.skip(in)
    out.raw(bytes, place, in.position - place)
  }

  private def encode(row: HeldRow, out: BlobWriter): Unit = {
    out.long(row.src)
    out.long(row.part)
    out.long(row.off)
    out.binary(row.id)
    out.binary(if (row.args == null) Array.emptyByteArray else row.args.getBytes)
  }

  private def decoded(at: Int): HeldRow = {
    val in = new BlobReader(bytes, places(at))
    val src = in.int()
    val part = in.int()
    val off = in.long()
    val id = in.binary()
    val length = in.int()
    val args = if (isTombstone(at)) null else new UnsafeRow(columns)
    if (args != null) args.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + in.position, length)
    new HeldRow(times(at), src, part, off, id, args)
  }
}

object Entries {
  private val FEW = 4
  private val MARKED = 1
  private val TOMBSTONE = 2

  def read(in: BlobReader, columns: Int): Entries = {
    val found = new Entries(columns)
    found.bytes = in.bytes
    found.count = in.int()
    found.room(found.count)
    var last = 0L
    var i = 0
    while (i < found.count) {
      last += in.long()
      val flag = in.byte().toByte
      found.put(i, last, flag, null, in.position)
      skip(in)
      i += 1
    }
    found
  }

  /** Over a place and columns. */
  private def skip(in: BlobReader): Unit = {
    in.long()
    in.long()
    in.long()
    in.skip(in.int())
    in.skip(in.int())
  }
}
