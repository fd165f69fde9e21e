/** Portions: what has come together of each key and slice, side by side in a few arrays. With an object for each, a look-up
  * would wait for memory at every reference; here it does so for its place and its words, among which a short key lies. */
package headrace

import java.util.Arrays

import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods

/** Portions are numbered as they come. `width`: words for what is counted of each. */
final class Portions(width: Int) {
  import Portions._

  private val stride = OWN + width
  // By hash, or in the next free place: so much of the hash as an int holds, which spares a look at most portions of
  // other keys, and a portion's number + 1.
  private var places = new Array[Long](FEW * 2)
  var words = new Array[Long](FEW * stride)
  private var keys = new Array[Byte](FEW * 16) // one behind the other
  private var keysEnd = 0
  var size = 0

  def start(portion: Int): Long = words(portion * stride + START)
  def rows(portion: Int): Long = words(portion * stride + ROWS)

  /** Where in `words` stands what is counted of it. */
  def counted(portion: Int): Int = portion * stride + OWN

  def key(portion: Int): Array[Byte] = {
    val place = words(portion * stride + KEY)
    Arrays.copyOfRange(keys, (place >>> 32).toInt, (place >>> 32).toInt + place.toInt)
  }

  /** One more row of the slice and the key that lies there. Gives the portion, which is the last if it is new. */
  def add(start: Long, base: AnyRef, offset: Long, length: Int): Int = {
    val hash = XXH64.hashUnsafeBytes(base, offset, length, start).toInt
    val head = if (length >= 8) Platform.getLong(base, offset) else few(base, offset, length)
    val tail = if (length > 8) Platform.getLong(base, offset + length - 8) else 0
    var at = hash & (places.length - 1)
    while (places(at) != 0) {
      if ((places(at) >>> 32).toInt == hash) {
        val portion = places(at).toInt - 1
        val from = portion * stride
        if (words(from + START) == start && words(from + HEAD) == head && words(from + TAIL) == tail &&
          isKey(words(from + KEY), base, offset, length)) {
          words(from + ROWS) += 1
          return portion
        }
      }
      at = (at + 1) & (places.length - 1)
    }
    places(at) = hash.toLong << 32 | size + 1
    room(length)
    val from = size * stride
    words(from + START) = start
    words(from + KEY) = keysEnd.toLong << 32 | length
    words(from + HEAD) = head
    words(from + TAIL) = tail
    words(from + ROWS) = 1
    Platform.copyMemory(base, offset, keys, Platform.BYTE_ARRAY_OFFSET + keysEnd, length)
    keysEnd += length
    size += 1
    if (size * 2 > places.length) spread()
    size - 1
  }

  def clear(): Unit = {
    Arrays.fill(places, 0L)
    Arrays.fill(words, 0, size * stride, 0L)
    size = 0
    keysEnd = 0
  }

  /** A key shorter than a word. */
  private def few(base: AnyRef, offset: Long, length: Int): Long = {
    var word = 0L
    var i = 0
    while (i < length) {
      word = word << 8 | Platform.getByte(base, offset + i) & 0xff
      i += 1
    }
    word
  }

  /** Whether the key of this place is the one that lies there; their first and last words are the same. */
  private def isKey(place: Long, base: AnyRef, offset: Long, length: Int): Boolean = place.toInt == length &&
    (length <= 16 || ByteArrayMethods.arrayEquals(base, offset, keys, Platform.BYTE_ARRAY_OFFSET + (place >>> 32), length))

  private def room(key: Int): Unit = {
    if (size * stride == words.length) words = Arrays.copyOf(words, words.length * 2)
    if (keysEnd + key > keys.length) keys = Arrays.copyOf(keys, Math.max(keysEnd + key, keys.length * 2))
  }

  private def spread(): Unit = {
    val before = places
    places = new Array[Long](before.length * 2)
    before.foreach { place =>
      if (place != 0) {
        var at = (place >>> 32).toInt & (places.length - 1)
        while (places(at) != 0) at = (at + 1) & (places.length - 1)
        places(at) = place
      }
    }
  }
}

private object Portions {
  val FEW = 1 << 10 // at first
  // A portion's own words.
  val START = 0
  val KEY = 1 // where it begins in `keys`, and its length
  val ROWS = 2
  val HEAD = 3 // the key's first eight bytes
  val TAIL = 4 // and its last
  val OWN = 5
}
