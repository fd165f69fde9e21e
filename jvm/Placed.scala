/** Rows in the partition where their key belongs: the same for all steps of a stage, and of those after it by the same key.
  *
  * Spark would place a row by all it groups by, the step included. By the key alone, what is made of one row for several
  * steps stays together and in order (rule P1 in real time), and a step behind another with the same key needs no shuffle
  * of its own. */
package org.apache.spark.sql.headrace

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BitwiseAnd, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.plans.physical.{Distribution, HashPartitioning, Partitioning, StatefulOpClusteredDistribution, UnspecifiedDistribution}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.internal.SQLConf

import _root_.headrace.Stage

/** `there`: the rows lie there already. */
case class Placed(slot: Attribute, key: Attribute, there: Boolean, child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): Placed = copy(child = newChild)
}

object PlacedStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case Placed(slot, key, there, child) => PlacedExec(slot, key, there, planLater(child)) :: Nil
    case _ => Nil
  }
}

case class PlacedExec(slot: Attribute, key: Attribute, there: Boolean, child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output

  /** As many as the state has: what its checkpoint says is under a name of its own. */
  private def partitions: Int = conf.getConf(SQLConf.STATEFUL_SHUFFLE_PARTITIONS_INTERNAL).getOrElse(conf.numShufflePartitions)

  override def requiredChildDistribution: Seq[Distribution] =
    if (there) UnspecifiedDistribution :: Nil
    else StatefulOpClusteredDistribution(Seq(BitwiseAnd(slot, Literal(Stage.PLACE))), partitions) :: Nil

  /** What the stage asks for: all rows of a slot and key are in one partition, though another than Spark would choose. */
  override def outputPartitioning: Partitioning = HashPartitioning(Seq(slot, key), partitions)

  override protected def doExecute(): RDD[InternalRow] = child.execute()

  override protected def withNewChildInternal(newChild: SparkPlan): PlacedExec = copy(child = newChild)
}
