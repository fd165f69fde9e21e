/** What a pattern is to its step, and what it knows of a key. */
package headrace.steps

import java.util.ArrayList

/** Times in micros. */
final class PatternSpec(spec: RowStepSpec) {
  private val json = spec.json
  private val kinds = spec.inputs(0).map(Kind.of)

  val nfa = new Nfa(json.get("nfa"))
  val within: Long = Nfa.bound(json.get("within"))
  val after: String = json.get("after").asText
  val to: Int = nfa.stepOf(json.get("to").asText)
  val arrival: Boolean = json.get("arrival").asBoolean
  val limit: Int = json.get("limit").asInt
  val numbers: Array[Int] = Array.tabulate(json.get("numbers").size)(json.get("numbers").get(_).asInt)
  val columns: Int = kinds.length
  val topics: Array[String] = spec.topics
  val output = new Slots(json.get("output").get("slots"), nfa, kinds)
  val conditions: Array[Condition] = Array.tabulate(spec.conditions.length) { i =>
    new Condition(new Slots(json.get("conditions").get(i).get("slots"), nfa, kinds), spec.conditions(i))
  }
}

/** A partial match: its last row taken, the edges open to it (another array when they change), and whether it is a match
  * all the same. `deadline`: when time closes the first of the edges `asked`. */
final class Run(val node: Node, var open: Array[Int], var matches: Boolean) {
  var asked: Array[Int] = _
  var deadline: Long = _
}

/** A match that may have to wait for its turn. */
final class Complete(val node: Node, val time: Long)

/** One key. `time`: up to where it has seen time pass, micros; by arrival nobody asks. `found` is empty between batches. */
final class PatternState extends State {
  val waiting = new ArrayList[HeldRow] // for their turn, in order R2
  var runs = new ArrayList[Run] // by first row
  val complete = new ArrayList[Complete] // in the order in which they became so
  val buffer = new Buffer
  var time: Long = Times.NONE
  val found = new ArrayList[Given]

  def empty: Boolean = waiting.isEmpty && runs.isEmpty && complete.isEmpty
  def held: Long = waiting.size + buffer.rows
}

/** A state as bytes: every row once, every node once after the one before it; others point at them by number. */
final class PatternLayout(columns: Int) {
  private val rows = new ArrayList[Kept]
  private val nodes = new ArrayList[Node]
  private val unnumbered = new ArrayList[Node]

  def write(state: PatternState, out: BlobWriter): Unit = {
    out.long(state.time)
    out.long(state.waiting.size)
    state.waiting.forEach(row => row.write(out))
    state.runs.forEach(run => number(run.node))
    state.complete.forEach(one => number(one.node))
    out.long(rows.size)
    if (!rows.isEmpty) {
      out.long(state.buffer.turn)
      out.bool(state.buffer.gap)
      rows.forEach { kept =>
        out.long(kept.turn)
        kept.row.write(out)
      }
      out.long(nodes.size)
      nodes.forEach { node =>
        out.long(node.kept.number)
        out.long(node.step)
        out.long(if (node.before == null) -1 else node.before.number)
      }
      out.long(state.runs.size)
      state.runs.forEach { run =>
        out.long(run.node.number)
        out.bool(run.matches)
        out.long(run.open.length)
        run.open.foreach(out.long(_))
      }
      out.long(state.complete.size)
      state.complete.forEach { one =>
        out.long(one.node.number)
        out.long(one.time)
      }
    }
    forget()
  }

  def read(in: BlobReader): PatternState = {
    val state = new PatternState
    state.time = in.long()
    repeat(in.int())(state.waiting.add(HeldRow.read(in, columns)))
    val held = in.int()
    if (held > 0) {
      val buffer = state.buffer
      buffer.turn = in.long()
      buffer.gap = in.bool()
      buffer.rows = held
      repeat(held) {
        val turn = in.long()
        rows.add(new Kept(HeldRow.read(in, columns), turn))
      }
      repeat(in.int()) {
        val (row, step, before) = (in.int(), in.int(), in.int())
        nodes.add(buffer.grow(if (before < 0) null else nodes.get(before), rows.get(row), step))
      }
      repeat(in.int()) {
        val (node, matches) = (buffer.hold(nodes.get(in.int())), in.bool())
        state.runs.add(new Run(node, Array.fill(in.int())(in.int()), matches))
      }
      repeat(in.int())(state.complete.add(new Complete(buffer.hold(nodes.get(in.int())), in.long())))
      nodes.forEach(node => buffer.release(node)) // each is held by those who point at it
      rows.forEach(kept => buffer.letGo(kept))
      forget()
    }
    state
  }

  /** Walks back only to the first node that has a number: what matches share is walked once. */
  private def number(last: Node): Unit = {
    var node = last
    while (node != null && node.number < 0) {
      unnumbered.add(node)
      node = node.before
    }
    while (!unnumbered.isEmpty) {
      node = unnumbered.remove(unnumbered.size - 1)
      node.number = nodes.size
      nodes.add(node)
      if (node.kept.number < 0) {
        node.kept.number = rows.size
        rows.add(node.kept)
      }
    }
  }

  private def forget(): Unit = {
    nodes.forEach(node => node.number = -1)
    rows.forEach(kept => kept.number = -1)
    nodes.clear()
    rows.clear()
  }

  private def repeat(times: Int)(work: => Unit): Unit = {
    var left = times
    while (left > 0) {
      work
      left -= 1
    }
  }
}
