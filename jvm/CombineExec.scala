/** Combine as a node of Spark's plan: it takes Spark's rows as they lie in memory, without a copy on either side. */
package org.apache.spark.sql.headrace

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}

import _root_.headrace.{Combining, StageSpec}

/** The chain with rows put together where they may be. */
case class Combined(spec: StageSpec, child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override lazy val references: AttributeSet = child.outputSet // it reads rows by place: no column may be left out
  override protected def stringArgs: Iterator[Any] = Iterator(child)
  override protected def withNewChildInternal(newChild: LogicalPlan): Combined = copy(child = newChild)
}

object CombineStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case Combined(spec, child) => CombineExec(spec, planLater(child)) :: Nil
    case _ => Nil
  }
}

case class CombineExec(spec: StageSpec, child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override protected def stringArgs: Iterator[Any] = Iterator(child)

  override protected def doExecute(): RDD[InternalRow] = {
    val stage = spec // not the whole node along to the tasks
    child.execute().mapPartitionsInternal(rows => new Combining(stage, rows))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): CombineExec = copy(child = newChild)
}
