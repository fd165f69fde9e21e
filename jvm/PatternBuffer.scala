/** The rows that partial matches hold, each stored once; matches that begin alike share their beginnings.
  *
  * A node is a row taken by a step after another node: a partial match is known by its last node. Nodes and rows count
  * who points at them, so that a row is used up (rule D3) the moment the last partial match lets go of it. */
package headrace.steps

/** A row in its turn: "directly after" is one turn more. `number`: its place in a blob being written. */
final class Kept(val row: HeldRow, val turn: Long) {
  var refs = 1
  var number: Int = -1
}

/** `step` has taken the row after `before` had taken its own; `first`: the first row of all. */
final class Node(val kept: Kept, val step: Int, val before: Node) {
  val first: Kept = if (before == null) kept else before.first
  var refs = 1
  var number: Int = -1

  /** The nodes up to this one, in order. */
  def path: Array[Node] = {
    var length = 0
    var node = this
    while (node != null) {
      length += 1
      node = node.before
    }
    val found = new Array[Node](length)
    node = this
    while (node != null) {
      length -= 1
      found(length) = node
      node = node.before
    }
    found
  }
}

/** `rows`: how many are held. `turn`: of the last row that was taken. `gap`: rows came since; how many is not counted, so
  * that rows which nobody takes leave the state as it is. `used`: let go of since somebody asked. */
final class Buffer {
  var rows = 0L
  var turn = 0L
  var gap = false
  var used = 0L

  /** The next row, held while it has its turn; `passed` after it. */
  def keep(row: HeldRow): Kept = {
    rows += 1
    new Kept(row, turn + (if (gap) 2 else 1))
  }

  def passed(kept: Kept): Unit = {
    gap = kept.refs == 1
    if (!gap) turn = kept.turn
    letGo(kept)
  }

  def letGo(kept: Kept): Unit = {
    kept.refs -= 1
    if (kept.refs == 0) {
      rows -= 1
      used += 1
    }
  }

  /** A new node; whoever asked for it holds it, and releases it. */
  def grow(before: Node, kept: Kept, step: Int): Node = {
    kept.refs += 1
    if (before != null) before.refs += 1
    new Node(kept, step, before)
  }

  def hold(node: Node): Node = {
    node.refs += 1
    node
  }

  def release(node: Node): Unit = {
    var found = node
    while (found != null) {
      found.refs -= 1
      if (found.refs > 0) return
      letGo(found.kept)
      found = found.before
    }
  }
}
