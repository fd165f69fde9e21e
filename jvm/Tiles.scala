/** Windows in tiles: rows are added up by pieces of time, as soon as no row can come that would see only some of them.
  *
  * A tile is a piece of time of one width, counted from the epoch. At time t a window of size S in tiles of width w is the
  * tile that t lies in, up to t, and the S / w - 1 tiles before it. So it forgets a tile at a time, and covers between
  * S - w and S. Its value is its tiles, merged in order, each made of its rows in the order of time: the same to the last
  * bit whether a tile was added up long ago or is made of rows now. */
package headrace.steps

import java.util.{ArrayList, TreeMap}

/** What its rows say: a state for each aggregate. `seen`: which rows they are, null if nobody asks. */
final class Tile(val states: Array[AnyRef], val seen: SeenRows)

/** Of one key and window, by start. */
final class Tiles {
  val added = new TreeMap[java.lang.Long, Tile]

  // What follows is not kept: it saves work while rows of a batch come, in order of time. Of the tile that was told of last
  // it is the tiles before it, and itself up to before the row at `end`; null: not known.
  var tile = 0L
  var end = 0
  var before: Tile = _
  var within: Tile = _

  /** Rows are no longer where they were, or other tiles are there. */
  def moved(): Unit = within = null
}

/** How a window is kept in tiles. Times in micros. `topics`: by source number, null: nobody asks what was seen. */
final class Tiling(size: Long, width: Long, tally: Tally, topics: Array[String]) {
  private val row = new Row // the one that an algebra is shown

  /** Start of the tile that a time lies in. */
  def tileOf(time: Long): Long = time - Math.floorMod(time, width)

  /** Start of the first tile of the window at this time. */
  def firstOf(time: Long): Long = tileOf(time) + width - size

  /** When a row of this time has left the window, with all of its tile. */
  def gone(time: Long): Long = tileOf(time) + size

  /** Adds a row to its tile. */
  def put(tiles: Tiles, one: Known): Unit = {
    add(tiles.added.computeIfAbsent(tileOf(one.time), _ => empty()), one)
    tiles.moved()
  }

  /** The whole window at this time. `rows` from `open` to before `end` are those in it that are in no tile yet. */
  def whole(tiles: Tiles, rows: ArrayList[Known], open: Int, end: Int, time: Long): Tile = {
    if (tiles.within == null || tiles.tile != tileOf(time) || tiles.end > end) gather(tiles, rows, open, end, time)
    while (tiles.end < end) {
      add(tiles.within, rows.get(tiles.end))
      tiles.end += 1
    }
    val total = empty()
    merge(total, tiles.before)
    merge(total, tiles.within)
    total
  }

  /** The tiles before that of this time, merged, and what is kept of itself. */
  private def gather(tiles: Tiles, rows: ArrayList[Known], open: Int, end: Int, time: Long): Unit = {
    tiles.tile = tileOf(time)
    tiles.before = empty()
    var at = open
    val begun = if (at < end) tileOf(rows.get(at).time) else tiles.tile // all rows of tiles before it are in these
    tiles.added.subMap(firstOf(time), begun).values.forEach(tile => merge(tiles.before, tile))
    while (at < end && rows.get(at).time < tiles.tile) {
      val start = tileOf(rows.get(at).time)
      val own = copyOf(tiles, start)
      while (at < end && rows.get(at).time < start + width) {
        add(own, rows.get(at))
        at += 1
      }
      merge(tiles.before, own)
    }
    tiles.within = copyOf(tiles, tiles.tile)
    tiles.end = at
  }

  /** Drops the tiles that nobody asks for at this time or after it. */
  def forget(tiles: Tiles, time: Long): Unit =
    while (!tiles.added.isEmpty && gone(tiles.added.firstKey) <= time) {
      tiles.added.pollFirstEntry()
      tiles.moved()
    }

  /** When all its tiles are forgotten, if there are any. */
  def ends(tiles: Tiles): Long = if (tiles.added.isEmpty) Times.NEVER else gone(tiles.added.lastKey)

  private def empty(): Tile = new Tile(tally.empty(), if (topics == null) null else new SeenRows(topics))

  private def copyOf(tiles: Tiles, start: Long): Tile = {
    val (copy, kept) = (empty(), tiles.added.get(start))
    if (kept != null) merge(copy, kept)
    copy
  }

  private def add(tile: Tile, one: Known): Unit = {
    row.time = one.time // those of one time are added as they came: for first and last that is order enough
    row.args = one.args
    tally.add(tile.states, row)
    if (topics != null) tile.seen.add(one.place)
  }

  private def merge(into: Tile, other: Tile): Unit = {
    tally.merge(into.states, other.states)
    if (topics != null) into.seen.merge(other.seen)
  }

  /** Starts are counted in tiles, each from the one before it. */
  def write(tiles: Tiles, out: BlobWriter): Unit = {
    out.long(tiles.added.size)
    var last = 0L
    tiles.added.forEach { (start, tile) =>
      out.long(start / width - last)
      last = start / width
      tally.write(tile.states, out)
      if (topics != null) tile.seen.write(out)
    }
  }

  def read(in: BlobReader): Tiles = {
    val tiles = new Tiles
    var left = in.int()
    var number = 0L
    while (left > 0) {
      number += in.long()
      tiles.added.put(number * width, new Tile(tally.read(in), if (topics == null) null else new SeenRows(topics).read(in)))
      left -= 1
    }
    tiles
  }
}
