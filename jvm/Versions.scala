/** A key's versions for as-of enrichment, in order R2.
  *
  * Few lie in the key's own state. Many lie in a chunk of their own, so that a row which only waits for its answer neither
  * reads nor writes them: of those it is known when they can be dropped, the rest is read when it is asked for. */
package headrace.steps

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** `ttl`: how long one answers that no other follows, micros; 0: for ever. */
final class Versions(columns: Int, ttl: Long, chunks: Chunks) {
  private var entries: Entries = _ // null: in the chunk, not read yet
  private var kept = false // in the chunk
  private var changed = false
  private var next = Times.NEVER // the oldest time that can be asked for at which one is of no more use
  private var last = Times.NEVER // the same when only the newest is left; if it is so already, when that is over

  def isEmpty: Boolean = entries != null && entries.isEmpty // a chunk is never empty

  def insert(version: HeldRow): Unit = {
    read().insert(version, marked = false)
    change()
  }

  /** What the table says as of this time; null: nothing. */
  def at(time: Long): UnsafeRow = {
    val known = read().firstAfter(time) - 1
    if (known < 0 || over(known) <= time) null else entries(known).args
  }

  /** Of the versions up to the oldest time that can be asked for, only the newest can be the answer, unless it is over
    * by then. */
  def drop(oldest: Long): Unit = if (next <= oldest) {
    val older = read().firstAfter(oldest)
    entries.dropFirst(if (over(older - 1) <= oldest) older else older - 1)
    change()
  }

  /** The oldest time that can be asked for at which only the newest is left; if it is so already, at which it is over. */
  def settles: Long = last

  /** Keeps the chunk: once a batch, after all changes. */
  def close(): Unit = if (changed) {
    changed = false
    val out = new BlobWriter
    entries.write(out)
    val large = chunks != null && out.size > Versions.LARGE
    if (large) chunks.put(Versions.CHUNK, out.result()) else if (kept) chunks.remove(Versions.CHUNK)
    kept = large
  }

  def write(out: BlobWriter): Unit = {
    out.bool(kept)
    if (kept) {
      out.fixed(next)
      out.fixed(last)
    } else entries.write(out)
  }

  private def read(): Entries = {
    if (entries == null) entries = Entries.read(new BlobReader(chunks.get(Versions.CHUNK)), columns)
    entries
  }

  private def change(): Unit = {
    changed = true
    look()
  }

  private def look(): Unit = {
    val size = entries.size
    val first = if (size > 0) over(0) else Times.NEVER
    next = if (size > 1) Math.min(first, entries.time(1)) else first
    last = if (size > 1) entries.time(size - 1) else first
  }

  /** From when on it answers as nothing does: a tombstone at once, a row that was not renewed when its time is up. */
  private def over(at: Int): Long =
    if (entries.isTombstone(at)) entries.time(at) else if (ttl > 0) entries.time(at) + ttl else Times.NEVER
}

object Versions {
  private val LARGE = 256 // bytes
  private val CHUNK = Array[Byte](0)

  /** `chunks` null: all lie in the key's own state. */
  def empty(columns: Int, ttl: Long, chunks: Chunks): Versions = {
    val made = new Versions(columns, ttl, chunks)
    made.entries = new Entries(columns)
    made
  }

  def read(in: BlobReader, columns: Int, ttl: Long, chunks: Chunks): Versions = {
    val made = new Versions(columns, ttl, chunks)
    made.kept = in.bool()
    if (made.kept) {
      made.next = in.fixed()
      made.last = in.fixed()
    } else {
      made.entries = Entries.read(in, columns)
      made.look()
    }
    made
  }
}
