/** The left rows that point to one foreign key, by their key, in chunks: one link's change touches one chunk.
  *
  * Linear hashing: their number alone says which chunk a key lies in, so there is no index to keep, and a chunk more or
  * less moves the links of one other chunk only. Most foreign keys have few links: a single chunk lies in the foreign
  * key's own state. What changed is written at the end of the batch. */
package headrace.steps

import java.util.{ArrayList, Arrays, HashMap}

/** A left row as the foreign key sees it. */
final class Link(val key: Array[Byte], val version: Long, val values: Array[Byte])

/** `size`: links; `count`: chunks, of which the store has those that it has kept. */
final class Links(chunks: Chunks, private var size: Long, private var count: Int, single: Links.Chunk) {
  import Links._

  private var kept = if (count > 1) count else 0
  private val open = new HashMap[Int, Chunk]
  if (count == 1) open.put(0, single)

  def isEmpty: Boolean = size == 0

  def put(link: Link): Unit = {
    val chunk = chunkOf(link.key)
    val at = chunk.find(link.key)
    chunk.changed = true
    if (at >= 0) chunk.links.set(at, link)
    else {
      chunk.links.add(link)
      size += 1
      if (size > count.toLong * FULL) split()
    }
  }

  def remove(key: Array[Byte]): Unit = {
    val chunk = chunkOf(key)
    val at = chunk.find(key)
    if (at >= 0) {
      chunk.changed = true
      chunk.links.remove(at)
      size -= 1
      // Far fewer than when it was split: a link that comes and goes must not move others each time.
      if (count > 1 && size < (count - 1L) * FULL / 2) merge()
    }
  }

  /** In order of their keys. */
  def all: ArrayList[Link] = {
    val found = new ArrayList[Link](size.toInt)
    (0 until count).foreach(number => found.addAll(chunk(number).links))
    found.sort((one, other) => Arrays.compareUnsigned(one.key, other.key))
    found
  }

  /** Writes the chunks that changed. */
  def close(): Unit = {
    if (count > 1) open.forEach((number, chunk) => if (chunk.changed && number < count) chunks.put(name(number), chunk.toBytes))
    (if (count > 1) count else 0).until(kept).foreach(number => chunks.remove(name(number)))
    kept = if (count > 1) count else 0
    open.values.forEach(_.changed = false)
  }

  def write(out: BlobWriter): Unit = {
    out.long(size)
    out.long(count)
    if (count == 1) chunk(0).write(out)
  }

  private def chunkOf(key: Array[Byte]): Chunk = chunk(numberOf(key))

  /** The low bits of its hash: as many as number all chunks, or one less if that chunk is not there yet. */
  private def numberOf(key: Array[Byte]): Int = {
    val hash = Hll.hash64(key)
    val half = Integer.highestOneBit(count)
    val number = hash & (2L * half - 1)
    (if (number < count) number else hash & (half - 1L)).toInt
  }

  private def chunk(number: Int): Chunk =
    open.computeIfAbsent(number, _ => if (number < kept) Chunk.read(new BlobReader(chunks.get(name(number)))) else new Chunk)

  /** The chunk whose links this one shares one bit less with. */
  private def parentOf(number: Int): Chunk = chunk(number ^ Integer.highestOneBit(number))

  private def split(): Unit = {
    val (from, to) = (parentOf(count), chunk(count))
    count += 1
    move(from, to, link => numberOf(link.key) == count - 1)
  }

  private def merge(): Unit = {
    val (from, to) = (chunk(count - 1), parentOf(count - 1))
    count -= 1
    move(from, to, _ => true)
  }

  private def move(from: Chunk, to: Chunk, which: Link => Boolean): Unit = {
    from.links.forEach(link => if (which(link)) to.links.add(link))
    from.links.removeIf(link => which(link))
    from.changed = true
    to.changed = true
  }
}

object Links {
  final val FULL = 32 // links in a chunk, on average, before there is one more

  def empty(chunks: Chunks): Links = new Links(chunks, 0, 1, new Chunk)

  def read(chunks: Chunks, in: BlobReader): Links = {
    val (size, count) = (in.long(), in.int())
    new Links(chunks, size, count, if (count == 1) Chunk.read(in) else null)
  }

  private def name(number: Int): Array[Byte] = {
    val out = new BlobWriter
    out.long(number)
    out.result()
  }

  /** Some links, in no order. */
  final class Chunk {
    val links = new ArrayList[Link]
    var changed = false

    def find(key: Array[Byte]): Int = {
      var at = links.size - 1
      while (at >= 0 && !Arrays.equals(links.get(at).key, key)) at -= 1
      at
    }

    def write(out: BlobWriter): Unit = {
      out.long(links.size)
      links.forEach { link =>
        out.binary(link.key)
        out.long(link.version)
        out.binary(link.values)
      }
    }

    def toBytes: Array[Byte] = {
      val out = new BlobWriter
      write(out)
      out.result()
    }
  }

  object Chunk {
    def read(in: BlobReader): Chunk = {
      val chunk = new Chunk
      var left = in.int()
      while (left > 0) {
        chunk.links.add(new Link(in.binary(), in.long(), in.binary()))
        left -= 1
      }
      chunk
    }
  }
}
