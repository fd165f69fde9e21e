/** The wheel: which keys time has something to say to, and when; kept in the stage's state, beside the keys.
  *
  * Spark's own timers cost six calls to the state store whenever a key's next moment moves, more than all its rows. Here
  * a moment is an entry in a list; lists are written whole, once a batch. An entry is never taken out before its time:
  * whoever meets it asks the key whether it still holds.
  *
  * Lists are by second for the next minute, by minute (64 s) for the next hour, and so on in steps of 64: when the first
  * moment of a list is reached, what is not yet due moves on to finer ones. So there are few lists, however far the
  * moments lie. */
package headrace

import java.nio.ByteBuffer
import java.util.{ArrayDeque, HashMap, TreeMap}

import headrace.steps.{BlobReader, BlobWriter, Times}

/** Where the wheel keeps its lists. */
trait WheelStore {
  def get(name: Array[Byte]): Array[Byte]
  def put(name: Array[Byte], bytes: Array[Byte]): Unit
  def remove(name: Array[Byte]): Unit
}

final class Wheel(store: WheelStore) {
  import Wheel._

  private val parts = new TreeMap[java.lang.Long, Integer] // by the first moment of a list: of how many parts it is kept
  private val fresh = new HashMap[java.lang.Long, BlobWriter] // entries of this batch, not yet kept
  private var opened = false
  private var wasKept = false

  /** Whether it has been kept before. */
  def open(): Boolean = {
    if (!opened) {
      opened = true
      val bytes = store.get(INDEX)
      wasKept = bytes != null
      if (wasKept) {
        val in = new BlobReader(bytes)
        var first = 0L
        while (!in.atEnd) {
          first += in.long()
          parts.put(first, in.int())
        }
      }
    }
    wasKept
  }

  /** Time has something to say to this key at `due`; `now`: where it stands. */
  def add(due: Long, slot: Long, key: Array[Byte], now: Long): Unit = {
    val first = listOf(due, now)
    var list = fresh.get(first)
    if (list == null) {
      list = new BlobWriter
      fresh.put(first, list)
    }
    list.long(due - first)
    list.fixed(slot)
    list.binary(key)
    if (list.size > PART) keep(first, list)
  }

  /** Takes out every entry that is due; those that share a list with them move on. */
  def takeDue(now: Long)(take: (Long, Long, Array[Byte]) => Unit): WheelTurn = {
    val reached = new ArrayDeque[(Long, Int)]
    if (now != Times.NONE)
      while (!parts.isEmpty && parts.firstKey <= now) {
        val list = parts.pollFirstEntry
        (0 until list.getValue).foreach(part => reached.add((list.getKey, part)))
      }
    () => {
      val more = !reached.isEmpty
      if (more) {
        val (first, part) = reached.poll()
        val name = nameOf(first, part)
        val in = new BlobReader(store.get(name))
        store.remove(name)
        while (!in.atEnd) {
          val due = first + in.long()
          val slot = in.fixed()
          val key = in.binary()
          if (due <= now) take(due, slot, key) else add(due, slot, key, now)
        }
      }
      more
    }
  }

  /** Keeps what is new. Gives whether anything is left to wait for. */
  def close(): Boolean = {
    fresh.forEach((first, list) => if (list.size > 0) keep(first, list))
    fresh.clear()
    if (parts.isEmpty) store.remove(INDEX)
    else {
      val out = new BlobWriter
      var last = 0L
      parts.forEach { (first, count) =>
        out.long(first - last)
        out.long(count.toLong)
        last = first
      }
      store.put(INDEX, out.result())
    }
    !parts.isEmpty
  }

  private def keep(first: Long, list: BlobWriter): Unit = {
    val part: Int = parts.getOrDefault(first, 0)
    store.put(nameOf(first, part), list.result())
    parts.put(first, part + 1)
    list.clear()
  }
}

/** Goes on by one part of a list; false when there are no more. */
trait WheelTurn {
  def next(): Boolean
}

object Wheel {
  private val SECOND = 1000L
  private val FAN = 64
  private val PART = 1 << 16 // bytes: no value in the store grows much beyond it
  private val INDEX = new Array[Byte](0)

  /** The first moment of the list that `due` belongs to, seen from `now`. */
  private def listOf(due: Long, now: Long): Long = {
    var width = SECOND
    val away = if (now == Times.NONE) SECOND * FAN else due - now
    while (away >= width * FAN) width *= FAN
    Math.floorDiv(due, width) * width
  }

  private def nameOf(first: Long, part: Int): Array[Byte] = ByteBuffer.allocate(12).putLong(first).putInt(part).array
}
