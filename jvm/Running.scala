/** A running aggregate: rows enter at one end in order and leave at the other, and its value is known at any moment.
  *
  * Where every aggregate can give a row back, it is removed. Else two stacks: rows enter `back`, which knows its total;
  * when `front` is empty, `back` is turned over into it, each entry with the total of itself and all rows after it.
  * Every row is merged twice in its life, however long the window is. */
package headrace.steps

import java.util.{ArrayDeque, ArrayList}

final class Running(tally: Tally) {
  private val inside = new ArrayDeque[Row]
  private var total = tally.empty() // of all rows, if they can be removed; else of the rows in `back`
  private val front = new ArrayList[Array[AnyRef]] // totals; the oldest row's is the last

  def rows: Int = inside.size

  def enter(row: Row): Unit = {
    inside.addLast(row)
    tally.add(total, row)
  }

  /** Rows of this time or older leave. */
  def leave(upTo: Long): Unit =
    while (!inside.isEmpty && inside.peekFirst.time <= upTo) {
      if (tally.removable) tally.remove(total, inside.peekFirst.args)
      else {
        if (front.isEmpty) turnOver()
        front.remove(front.size - 1)
      }
      inside.removeFirst()
    }

  def values(): Array[Any] =
    if (front.isEmpty) tally.values(total)
    else {
      val merged = tally.empty()
      tally.merge(merged, front.get(front.size - 1))
      tally.merge(merged, total)
      tally.values(merged)
    }

  private def turnOver(): Unit = {
    val newestFirst = inside.descendingIterator
    while (newestFirst.hasNext) {
      val own = tally.empty()
      tally.add(own, newestFirst.next())
      if (!front.isEmpty) tally.merge(own, front.get(front.size - 1))
      front.add(own)
    }
    total = tally.empty()
  }
}
