/** The watermark of a query, from what is known of each partition (rules T3 and T4): pure, no broker, no clock. */
package headrace

/** What is known of a partition when time is to move: greatest event time or mark (micros), wall clock when something
  * was last unread (ms), whether it is read to its end, and whether it can bring nothing more (a bounded run). */
case class Reached(place: Place, top: Long, seen: Long, caughtUp: Boolean, finished: Boolean)

object Frontier {
  val None: Long = Part.None
  val End: Long = steps.Times.END

  /** W in milliseconds, never below `before`; topics that do not count are as if they were not there.
    *
    * Idle partitions leave the minimum. When all are idle, every stream's frontier is the greatest event time of all and
    * runs on with the clock from the moment the last of them fell idle. `exhausted` is asked for idle candidates: is
    * there truly nothing behind them, not even an open transaction? */
  def watermark(spec: LogSpec, all: Seq[Reached], before: Long, now: Long, bounded: Boolean,
                exhausted: Seq[Place] => Set[Place]): Long = {
    val parts = all.filter(p => spec.topics(p.place.topic).counts)
    if (parts.isEmpty) return before
    val end = if (bounded) spec.endOfInput else scala.None
    if (end.isDefined && parts.forall(_.finished)) return math.max(before, end.get)
    val out = if (bounded) leftInHistory(spec, parts) else idle(spec, parts, now, exhausted)
    val active = parts.filterNot(p => out(p.place))
    val found =
      if (active.nonEmpty) { val w = active.map(of(spec, _)); if (w.contains(None)) None else w.min }
      else runningOn(spec, parts, now)
    math.max(before, math.min(found, end.getOrElse(End)))
  }

  /** In history nothing is idle. What is read to its bound leaves the minimum, for nothing more can come from it; if the
    * run goes on live afterwards (no end of input), only a partition that never held a record does. */
  private def leftInHistory(spec: LogSpec, parts: Seq[Reached]): Set[Place] =
    parts.filter(p => p.finished && (spec.endOfInput.isDefined || p.top == None)).map(_.place).toSet

  private def idle(spec: LogSpec, parts: Seq[Reached], now: Long, exhausted: Seq[Place] => Set[Place]): Set[Place] = {
    val quiet = parts.filter(p => p.caughtUp && idleAt(spec, p) <= now).map(_.place)
    if (quiet.isEmpty) Set.empty else exhausted(quiet)
  }

  /** When a silent partition falls idle; never, if its stream says so. */
  private def idleAt(spec: LogSpec, p: Reached): Long = spec.topics(p.place.topic).idle match {
    case Some(ms) => p.seen + ms
    case scala.None => Long.MaxValue
  }

  /** The least over the streams of (frontier - disorder), where each frontier is the same: the greatest time, run on. In
    * history all are out only if none holds a record. */
  private def runningOn(spec: LogSpec, parts: Seq[Reached], now: Long): Long = {
    val greatest = parts.map(_.top).max
    val disorder = parts.map(p => spec.topics(p.place.topic).disorder).max
    if (greatest == None) None else Math.floorDiv(greatest, 1000L) + (now - parts.map(idleAt(spec, _)).max) - disorder
  }

  /** A partition's own watermark: its frontier less its stream's disorder. */
  def of(spec: LogSpec, p: Reached): Long =
    if (p.top == None) None else Math.floorDiv(p.top, 1000L) - spec.topics(p.place.topic).disorder
}
