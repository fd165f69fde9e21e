/** A float if it lies between two bounds, else null: NaN never does. With `when` the value would stand twice in the plan,
  * and what is computed in ten steps a thousand times. */
package org.apache.spark.sql.headrace

import org.apache.spark.sql.catalyst.expressions.{Expression, ImplicitCastInputTypes, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{AbstractDataType, DataType, DoubleType}

case class Within(child: Expression, low: Double, high: Double) extends UnaryExpression with ImplicitCastInputTypes {
  override def inputTypes: Seq[AbstractDataType] = Seq(DoubleType) // of a null that nobody gave a type, too
  override def dataType: DataType = DoubleType
  override def nullable: Boolean = true
  override def prettyName: String = Within.name

  override protected def nullSafeEval(value: Any): Any = {
    val found = value.asInstanceOf[Double]
    if (found >= low && found <= high) found else null
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val value = child.genCode(ctx)
    ev.copy(code = code"""${value.code}
      double ${ev.value} = ${value.value};
      boolean ${ev.isNull} = ${value.isNull} || !(${ev.value} >= ${low}D && ${ev.value} <= ${high}D);""")
  }

  override protected def withNewChildInternal(newChild: Expression): Within = copy(child = newChild)
}

object Within {
  val name = "headrace_within"

  /** Of a call in SQL: the value and two literals. */
  def of(arguments: Seq[Expression]): Expression = {
    val Seq(value, low, high) = arguments
    Within(value, low.eval().asInstanceOf[Double], high.eval().asInstanceOf[Double])
  }
}
