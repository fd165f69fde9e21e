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
  private var places = new Array[Int](FEW * 2) // by hash, or in the next free place: a portion's number + 1
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

  /** One more row of the slice and the key that lies there, in a row: padded with zeros to whole words. Gives the portion,
    * which is the last if it is new. */
  def add(start: Long, base: AnyRef, offset: Long, length: Int): Int = {
    val hash = XXH64.hashUnsafeBytes(base, offset, length, start)
    val head = if (length > 0) Platform.getLong(base, offset) else 0
    val neck = if (length > 8) Platform.getLong(base, offset + 8) else 0
    var at = hash.toInt & (places.length - 1)
    while (places(at) != 0) {
      val portion = places(at) - 1
      val from = portion * stride
      if (words(from) == hash && words(from + START) == start && words(from + HEAD) == head && words(from + NECK) == neck &&
        isKey(words(from + KEY), base, offset, length)) {
        words(from + ROWS) += 1
        return portion
      }
      at = (at + 1) & (places.length - 1)
    }
    places(at) = size + 1
    room(length)
    val from = size * stride
    words(from) = hash
    words(from + START) = start
    words(from + KEY) = keysEnd.toLong << 32 | length
    words(from + HEAD) = head
    words(from + NECK) = neck
    words(from + ROWS) = 1
    Platform.copyMemory(base, offset, keys, Platform.BYTE_ARRAY_OFFSET + keysEnd, length)
    keysEnd += length
    size += 1
    if (size * 2 > places.length) spread()
    size - 1
  }

  def clear(): Unit = {
    Arrays.fill(places, 0)
    Arrays.fill(words, 0, size * stride, 0L)
    size = 0
    keysEnd = 0
  }

  /** Whether the key of this place is the one that lies there; their first words are the same. */
  private def isKey(place: Long, base: AnyRef, offset: Long, length: Int): Boolean = place.toInt == length &&
    (length <= 16 || ByteArrayMethods.arrayEquals(base, offset, keys, Platform.BYTE_ARRAY_OFFSET + (place >>> 32), length))

  private def room(key: Int): Unit = {
    if (size * stride == words.length) words = Arrays.copyOf(words, words.length * 2)
    if (keysEnd + key > keys.length) keys = Arrays.copyOf(keys, Math.max(keysEnd + key, keys.length * 2))
  }

  private def spread(): Unit = {
    places = new Array[Int](places.length * 2)
    var portion = 0
    while (portion < size) {
      var at = words(portion * stride).toInt & (places.length - 1)
      while (places(at) != 0) at = (at + 1) & (places.length - 1)
      places(at) = portion + 1
      portion += 1
    }
  }
}

private object Portions {
  val FEW = 1 << 10 // at first
  // A portion's own words, behind the hash of slice and key.
  val START = 1
  val KEY = 2 // where it begins in `keys`, and its length
  val ROWS = 3
  val HEAD = 4 // the key's first bytes
  val NECK = 5 // and the next
  val OWN = 6
}
