/** Spark's watermark, told by the log source instead of found in a column.
  *
  * Spark's own node takes the greatest value of a column over a batch: with partitions that run apart, rows of the
  * slower ones are late. The source knows each partition's frontier, so after a batch it says the watermark itself
  * (rules T3 and T4): a minimum, one batch earlier than through a column, and without rows made for that purpose. */
package org.apache.spark.sql.headrace

import java.util.UUID

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}
import org.apache.spark.sql.catalyst.{FunctionIdentifier, InternalRow}
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExpressionInfo}
import org.apache.spark.sql.catalyst.plans.logical.{EventTimeWatermark, LogicalPlan}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation
import org.apache.spark.sql.execution.streaming.operators.stateful.{EventTimeStats, EventTimeStatsAccum, EventTimeWatermarkExec}
import org.apache.spark.unsafe.types.CalendarInterval

import _root_.headrace.{Frontier, LogStream}

/** Set as `spark.sql.extensions`. */
class HeadraceExtensions extends SparkSessionExtensionsProvider {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectPlannerStrategy(_ => FrontierStrategy)
    extensions.injectPlannerStrategy(_ => CombineStrategy)
    extensions.injectPlannerStrategy(_ => PlacedStrategy)
    val within = new ExpressionInfo(classOf[Within].getName, Within.name)
    extensions.injectFunction((FunctionIdentifier(Within.name), within, Within.of))
  }
}

/** Plans a watermark above a log source as one that asks the source. */
object FrontierStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case EventTimeWatermark(id, column, delay, child) =>
      child.collectFirst { case r: StreamingDataSourceV2ScanRelation if r.stream.isInstanceOf[LogStream] =>
        new FrontierWatermarkExec(id, column, delay, planLater(child))(new FrontierStats(r.stream.asInstanceOf[LogStream]))
      }.toSeq
    case _ => Nil
  }
}

/** Passes rows on untouched. Spark collects nodes of the parent class and reads their statistics after a batch. */
class FrontierWatermarkExec(nodeId: UUID, eventTime: Attribute, delay: CalendarInterval, child: SparkPlan)(
    override val eventTimeStats: FrontierStats) extends EventTimeWatermarkExec(nodeId, eventTime, delay, child) {

  override protected def doExecute(): RDD[InternalRow] = child.execute()

  // Sorting takes the whole plan along to the tasks. The statistics that the parent class made for itself were never
  // registered, since ours stand in their place, and Spark refuses to send them: nobody needs this node there.
  private def writeReplace(): AnyRef = child

  // A copy gets statistics of its own: Spark registers them with the node.
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(new FrontierStats(eventTimeStats.stream))

  override protected def withNewChildInternal(newChild: SparkPlan): FrontierWatermarkExec =
    new FrontierWatermarkExec(nodeId, eventTime, delay, newChild)(new FrontierStats(eventTimeStats.stream))
}

/** Statistics of one batch: no values, only the watermark that follows it, asked for once the batch is over. */
class FrontierStats(val stream: LogStream) extends EventTimeStatsAccum(EventTimeStats.zero) {
  private lazy val told: EventTimeStats = {
    val watermark = stream.announce()
    if (watermark == Frontier.None) EventTimeStats.zero else EventTimeStats(watermark, watermark, watermark.toDouble, 1)
  }
  override def value: EventTimeStats = told
}
