/** The stable id of an output (rule D2) as a column: what a step made has one already, a row of the log gets it here. */
package org.apache.spark.sql.headrace

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.types.{BinaryType, DataType}

import _root_.headrace.Ids

/** Over a struct of (key, src, part, off, id); as hex digits in UTF-8, ready to be a header. */
case class StableId(child: Expression, app: String, version: String, step: String, topics: Seq[String])
    extends UnaryExpression {
  override def dataType: DataType = BinaryType
  override def nullable: Boolean = false
  override def prettyName: String = "stableId"

  override def nullSafeEval(value: Any): Any = {
    val row = value.asInstanceOf[InternalRow]
    val id = row.getBinary(4)
    if (id != null && id.length == Ids.Length) Ids.hex(id).getBytes(UTF_8)
    else {
      val key = if (row.isNullAt(0)) "" else new String(row.getBinary(0), UTF_8)
      val cause = Ids.cause(s"${topics(row.getInt(1))}/${row.getInt(2)}/${row.getLong(3)}", id)
      Ids.hex(Ids.stable(app, version, step, key, cause)).getBytes(UTF_8)
    }
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val self = ctx.addReferenceObj("stableId", this)
    nullSafeCodeGen(ctx, ev, row => s"${ev.value} = (byte[]) $self.nullSafeEval($row);")
  }

  override protected def withNewChildInternal(newChild: Expression): StableId = copy(child = newChild)
}
