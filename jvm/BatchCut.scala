/** Where the next batch ends: at most so many records, and in an aligned replay all partitions up to one record time. */
package headrace

class BatchCut(spec: LogSpec, broker: LogBroker) {
  private var step = BatchCut.FirstStep // of an aligned replay, ms: the last one is the best guess for the next

  /** Ends between `from` and `want`, and the record time reached (None unless aligned). `after`: the time reached before. */
  def apply(from: Map[Place, Long], want: Map[Place, Long], after: Long): (Map[Place, Long], Long) =
    if (spec.aligned) aligned(from, want, after) else (shared(from, want), Part.None)

  /** In proportion to what is unread, so that no partition starves. */
  def shared(from: Map[Place, Long], want: Map[Place, Long]): Map[Place, Long] = {
    val max = spec.maxRecords
    val total = count(from, want)
    if (total <= max) want
    else want.map { case (p, end) => p -> math.min(end, from(p) + math.ceil((end - from(p)).toDouble * max / total).toLong) }
  }

  /** As late a time as `max_records` allows: a binary search, one request for all partitions per probe. */
  private def aligned(from: Map[Place, Long], want: Map[Place, Long], after: Long): (Map[Place, Long], Long) = {
    val open = want.collect { case (p, end) if end > from(p) => p }
    if (open.isEmpty) return (want, after)
    val max = spec.maxRecords
    def at(ms: Long): Map[Place, Long] = {
      val found = broker.since(open, ms)
      want.map { case (p, end) => p -> found.get(p).map(f => math.min(end, math.max(from(p), f._1))).getOrElse(end) }
    }
    val first = broker.since(open, 0)
    if (first.isEmpty) return (shared(from, want), after) // records without timestamps
    val base = if (after == Part.None) first.values.map(_._2).min else after
    var (low, lowEnds) = (base, from) // within max
    var (high, highEnds) = (base + step, at(base + step))
    while (count(from, highEnds) <= max && highEnds != want) { low = high; lowEnds = highEnds; high += high - base; highEnds = at(high) }
    if (count(from, highEnds) <= max) return (highEnds, low) // all of it; what comes next may be older than `high`
    while (high - low > 1 && count(from, lowEnds) < max / 2) {
      val middle = low + (high - low) / 2
      val ends = at(middle)
      if (count(from, ends) <= max) { low = middle; lowEnds = ends } else { high = middle; highEnds = ends }
    }
    step = math.max(1000L, low - base)
    if (count(from, lowEnds) > 0) (lowEnds, low) else (shared(from, highEnds), after) // too many within one ms
  }

  private def count(from: Map[Place, Long], to: Map[Place, Long]): Long = to.map { case (p, end) => end - from(p) }.sum
}

object BatchCut {
  private val FirstStep = 60000L
}
