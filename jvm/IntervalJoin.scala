/** Interval join: two streams, equal keys, lower <= r.time - l.time <= upper, both inclusive (rules J1-J3, J6).
  *
  * A pair comes out when its second row arrives. A left row's time is up when W > l.time + upper, a right row's when
  * W > r.time - lower, but never before W > its own time: where the bounds exclude 0, a row that is on time would be late
  * otherwise. When its time is up a row comes out alone if `how` says so and no partner was found, and its state is
  * dropped. A row that arrives after that is late, even if partners are still held. What comes out for each `how` stands
  * in the Python step.
  *
  * Entries that have nothing to tell when their time is up do not wake their key one by one: a row never sees them (it
  * looks at their time), and they are dropped with the next row, or with the last entry. */
package headrace.steps

import java.util.ArrayList

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, JoinedRow, UnsafeRow}
import org.apache.spark.unsafe.types.UTF8String

import headrace.Stage

/** One key: entries by side; a mark says that a partner was found. Between batches a semi or anti join holds no marked
  * left row. */
final class IntervalJoinState(val sides: Array[Entries]) extends State {
  def empty: Boolean = sides(0).isEmpty && sides(1).isEmpty
  def held: Long = sides(0).size + sides(1).size
}

final class IntervalJoin(spec: RowStepSpec) extends RowStep[IntervalJoinState] {
  import IntervalJoin._

  private val how = spec.json.get("how").asText
  private val lower = spec.json.get("lower").asLong // micros
  private val upper = spec.json.get("upper").asLong
  private val unmatched = spec.json.get("unmatched").asBoolean
  private val pairs = how != "semi" && how != "anti"
  private val reach = Array(Math.max(upper, 0), Math.max(-lower, 0)) // how far after a row's time its time is up
  private val alone = Array(Set("left", "full", "anti")(how), Set("right", "full")(how)) // whose rows come out without partner
  private val told = Array(alone(LEFT) || unmatched, alone(RIGHT) || (unmatched && pairs)) // those, or anyway
  private val columns = spec.inputs.map(_.length)
  private val nothing = columns.map(HeldRow.nothing)

  def fresh(): IntervalJoinState = new IntervalJoinState(columns.map(new Entries(_)))

  /** What the row makes of the rows held on the other side comes out in their order R2. Of a row that comes in on both
    * sides (a self join), the left one is given first. */
  def step(state: IntervalJoinState, row: Row, side: Int, before: Long, out: ArrayList[Given]): Int = {
    if (isLate(row, side, before)) return Verdict.LATE
    val others = state.sides(1 - side)
    val first = if (side == LEFT) row.time + lower else row.time - upper
    val last = if (side == LEFT) row.time + upper else row.time - lower
    // Entries within the bounds whose time was not up at W(k-1).
    val from = others.firstFrom(if (before == Times.NONE) first else Math.max(first, before * Times.MILLI - reach(1 - side)))
    val until = others.firstAfter(last)
    if (pairs) pair(state, HeldRow.of(row), side, from, until, out)
    else if (side == RIGHT) find(state, HeldRow.of(row), from, until, out)
    else if (from < until) {
      if (how == "semi") out.add(joined(HeldRow.of(row), null))
      return Verdict.USED
    } else state.sides(LEFT).insert(HeldRow.of(row), marked = false)
    Verdict.HELD
  }

  /** A row whose key is null has no partner (rule J6): it needs no state, and comes out alone at once if at all. */
  override def unkeyed(row: Row, side: Int, before: Long, out: ArrayList[Given]): Int = {
    if (isLate(row, side, before)) return Verdict.LATE
    if (told(side)) tellAlone(HeldRow.of(row), side, out)
    Verdict.USED
  }

  override def late(row: Row, side: Int, watermark: Long): InternalRow = {
    val args = row.args.asInstanceOf[UnsafeRow]
    val both = if (side == LEFT) new JoinedRow(args, nothing(RIGHT)) else new JoinedRow(nothing(LEFT), args)
    new JoinedRow(both, new GenericInternalRow(Array[Any](SIDES(side), watermark)))
  }

  /** Rows whose time is up: those that come out alone, both sides in one order R2. */
  def onTime(state: IntervalJoinState, watermark: Long, clock: Long, out: ArrayList[Given]): Long = {
    var used = if (pairs) 0L else state.sides(LEFT).dropMarked().toLong // found, and so of no more use
    if (watermark == Times.NONE) return used
    val lefts = state.sides(LEFT)
    val rights = state.sides(RIGHT)
    val goneLeft = lefts.firstFrom(watermark * Times.MILLI - reach(LEFT))
    val goneRight = rights.firstFrom(watermark * Times.MILLI - reach(RIGHT))
    var left = nextAlone(lefts, LEFT, 0, goneLeft)
    var right = nextAlone(rights, RIGHT, 0, goneRight)
    while (left < goneLeft || right < goneRight)
      if (right == goneRight || (left < goneLeft && isBefore(lefts, left, rights, right))) {
        tellAlone(lefts(left), LEFT, out)
        left = nextAlone(lefts, LEFT, left + 1, goneLeft)
      } else {
        tellAlone(rights(right), RIGHT, out)
        right = nextAlone(rights, RIGHT, right + 1, goneRight)
      }
    lefts.dropFirst(goneLeft)
    rights.dropFirst(goneRight)
    used + goneLeft + goneRight
  }

  /** When `onTime` has something to tell; else when all entries can go. */
  def due(state: IntervalJoinState): Long = {
    var tells = Times.NEVER
    var goes = Times.NONE
    var side = LEFT
    while (side <= RIGHT) {
      val entries = state.sides(side)
      if (!entries.isEmpty) goes = Math.max(goes, entries.time(entries.size - 1) + reach(side))
      val first = nextAlone(entries, side, 0, entries.size)
      if (first < entries.size) tells = Math.min(tells, entries.time(first) + reach(side))
      side += 1
    }
    if (tells != Times.NEVER) Times.upToMs(tells + 1)
    else if (goes != Times.NONE) Times.upToMs(goes + 1)
    else Times.NEVER
  }

  def write(state: IntervalJoinState, out: BlobWriter): Unit = state.sides.foreach(_.write(out))

  def read(in: BlobReader): IntervalJoinState = new IntervalJoinState(columns.map(Entries.read(in, _)))

  private def isLate(row: Row, side: Int, before: Long): Boolean =
    before != Times.NONE && row.time + reach(side) < before * Times.MILLI

  /** Pairs of a row that is held from now on. */
  private def pair(state: IntervalJoinState, row: HeldRow, side: Int, from: Int, until: Int, out: ArrayList[Given]): Unit = {
    val others = state.sides(1 - side)
    state.sides(side).insert(row, marked = from < until)
    var i = from
    while (i < until) {
      others.mark(i)
      out.add(if (side == LEFT) joined(row, others(i)) else joined(others(i), row))
      i += 1
    }
  }

  /** A right row of a semi or anti join: the left rows that now have their first partner. */
  private def find(state: IntervalJoinState, row: HeldRow, from: Int, until: Int, out: ArrayList[Given]): Unit = {
    val lefts = state.sides(LEFT)
    state.sides(RIGHT).insert(row, marked = false)
    var i = from
    while (i < until) {
      if (!lefts.isMarked(i)) {
        lefts.mark(i)
        if (how == "semi") out.add(joined(lefts(i), null))
      }
      i += 1
    }
  }

  /** The next entry that is told without partner, `until` if there is none. */
  private def nextAlone(entries: Entries, side: Int, from: Int, until: Int): Int = {
    if (!told(side)) return until
    var at = from
    while (at < until && entries.isMarked(at)) at += 1
    at
  }

  private def isBefore(lefts: Entries, left: Int, rights: Entries, right: Int): Boolean =
    if (lefts.time(left) != rights.time(right)) lefts.time(left) < rights.time(right)
    else lefts(left).compare(rights(right)) <= 0

  private def tellAlone(row: HeldRow, side: Int, out: ArrayList[Given]): Unit = {
    val one = if (side == LEFT) joined(row, null) else joined(null, row)
    if (alone(side)) out.add(one)
    if (unmatched) {
      val values = new JoinedRow(one.values, new GenericInternalRow(Array[Any](SIDES(side))))
      out.add(new Given(Stage.UNMATCHED, one.time, values, null, one.causeText))
    }
  }

  private def joined(left: HeldRow, right: HeldRow): Given = {
    val time = if (left == null) right.time else if (right == null) left.time else Math.max(left.time, right.time)
    val values = new JoinedRow(if (left == null) nothing(LEFT) else left.args, if (right == null) nothing(RIGHT) else right.args)
    new Given(Stage.ROWS, time, values, null, cause(left) + "+" + cause(right))
  }

  private def cause(row: HeldRow): String = if (row == null) "" else Cause.of(row, spec.topics)
}

object IntervalJoin {
  private final val LEFT = 0
  private final val RIGHT = 1
  private val SIDES = Array(UTF8String.fromString("left"), UTF8String.fromString("right"))
}
