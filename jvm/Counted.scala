/** A condition that counts the rows it is asked about: how stateless steps tell what they used and filtered (rule D3). */
package org.apache.spark.sql.headrace

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.classic.{ExpressionUtils, SparkSession}
import org.apache.spark.sql.types.{BooleanType, DataType}

import _root_.headrace.Counters

/** Where a step counts. Generated code refers to it: with its number in it, that of a flow which is started again would be
  * another, and compiled again. */
case class Site(counters: Counters, number: Int, step: Int) {
  def counts: Array[Long] = counters.of(number, step)
}

/** True where the child is, else false. `yes` and `no`: the terms to count under, -1 for none. */
case class Counted(child: Expression, site: Site, yes: Int, no: Int) extends UnaryExpression {
  override def dataType: DataType = BooleanType
  override def nullable: Boolean = false
  override def prettyName: String = "counted"

  // Spark writes every batch's plan as text, and the counters with all they hold would stand in it.
  override protected def stringArgs: Iterator[Any] = Iterator(child, site.step)

  // To Catalyst it gives another answer each time: so it is neither asked twice, nor moved, nor left out.
  override lazy val deterministic: Boolean = false

  @transient private lazy val counts = site.counts

  override def eval(row: InternalRow): Any = {
    val passes = child.eval(row) == true
    val term = if (passes) yes else no
    if (term >= 0) {
      counts(Counters.IN) += 1
      counts(term) += 1
    }
    passes
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val told = ctx.addReferenceObj("site", site)
    val counts = ctx.addMutableState("long[]", "counts", v => s"$v = $told.counts();")
    val condition = child.genCode(ctx)
    def count(term: Int): String = if (term < 0) "" else s"$counts[${Counters.IN}]++; $counts[$term]++;"
    ev.copy(code = code"""${condition.code}
      boolean ${ev.value} = !${condition.isNull} && ${condition.value};
      if (${ev.value}) { ${count(yes)} } else { ${count(no)} }""", isNull = FalseLiteral)
  }

  override protected def withNewChildInternal(newChild: Expression): Counted = copy(child = newChild)
}

object Counted {
  def apply(condition: Column, step: Int, yes: String, no: String): Column = {
    val site = Site(Counters.open(SparkSession.active.sparkContext), Counters.site(), step)
    ExpressionUtils.column(Counted(ExpressionUtils.expression(condition), site, Counters.term(yes), Counters.term(no)))
  }
}
