/** A static table as an expression: from a key text to the row of that key. */
package org.apache.spark.sql.headrace

import java.nio.charset.StandardCharsets.UTF_8
import java.util.HashMap

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.unsafe.types.UTF8String

import _root_.headrace.{Field, WireDecoder}

/** Null where there is no such key. The rows are broadcast: they reach an executor once, not with every task. */
case class Lookup(child: Expression, schema: StructType, table: Broadcast[HashMap[UTF8String, UnsafeRow]])
    extends UnaryExpression {
  override def dataType: DataType = schema
  override def nullable: Boolean = true
  override def prettyName: String = "lookup"

  @transient private lazy val rows = table.value

  override protected def nullSafeEval(key: Any): Any = rows.get(UTF8String.fromBytes(key.asInstanceOf[Array[Byte]]))

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val map = classOf[HashMap[_, _]].getName
    val told = ctx.addReferenceObj("table", table, classOf[Broadcast[_]].getName)
    val rows = ctx.addMutableState(map, "rows", v => s"$v = ($map) $told.value();")
    nullSafeCodeGen(ctx, ev, key => s"""
      ${ev.value} = (${classOf[UnsafeRow].getName}) $rows.get(UTF8String.fromBytes($key));
      ${ev.isNull} = ${ev.value} == null;""")
  }

  override protected def withNewChildInternal(newChild: Expression): Lookup = copy(child = newChild)
}

object Lookup {
  /** `table`: `{"fields": [...], "rows": [[key text, JSON object of rule F1], ...]}`. */
  def apply(key: Column, table: String): Column = {
    val o = new ObjectMapper().readTree(table)
    val fields = Field.parse(o.get("fields"))
    val schema = Field.schema(fields)
    val decoder = new WireDecoder(fields, Map.empty)
    val packed = UnsafeProjection.create(schema)
    val rows = new HashMap[UTF8String, UnsafeRow]
    o.get("rows").elements.asScala.foreach { row =>
      decoder.decode(row.get(1).asText.getBytes(UTF_8))
      rows.put(UTF8String.fromString(row.get(0).asText), packed(decoder.row).copy())
    }
    val held = SparkSession.active.sparkContext.broadcast(rows)
    ChainColumns.of(Lookup(_, schema, held), key)
  }
}
