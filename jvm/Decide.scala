/** Deciding as an expression: from a packed row to the same with what the standing policy says of it. */
package org.apache.spark.sql.headrace

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, JoinedRow, UnaryExpression, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types.{BinaryType, DataType, StructType}
import org.apache.spark.unsafe.types.UTF8String

import _root_.headrace.{Packing, Policies, Standing}
import _root_.headrace.deciding.{Decision, Judge, Policy}

/** `place`: of the policies (Policies.join). `default`: what is said while there is none. */
case class Decide(child: Expression, place: String, default: String, row: StructType, said: StructType) extends UnaryExpression {
  override def dataType: DataType = BinaryType
  override def prettyName: String = "decide"

  // A policy may be replaced between two answers: so it is asked once for a row.
  override lazy val deterministic: Boolean = false

  @transient private lazy val deciding = new Deciding(place, default, row, said)

  override protected def nullSafeEval(payload: Any): Any = deciding.decide(payload.asInstanceOf[Array[Byte]])

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val kind = classOf[Deciding].getName
    val told = Seq(place, default, row, said).map(one => ctx.addReferenceObj("told", one, one.getClass.getName))
    val deciding = ctx.addMutableState(kind, "deciding", v => s"$v = new $kind(${told.mkString(", ")});")
    nullSafeCodeGen(ctx, ev, payload => s"${ev.value} = $deciding.decide($payload);")
  }

  override protected def withNewChildInternal(newChild: Expression): Decide = copy(child = newChild)
}

/** Of one task. */
final class Deciding(place: String, default: String, row: StructType, said: StructType) {
  private val holder = Policies.of(place)
  private var standing: Standing = _
  private var (active, shadow): (Judge, Judge) = (null, null)
  private val asked = new UnsafeRow(row.length)
  private val both = new JoinedRow
  private val answer = UnsafeProjection.create(said)
  private val packing = new Packing((row ++ said).map(_.dataType).toArray)

  def decide(payload: Array[Byte]): Array[Byte] = {
    val now = holder.standing
    if (now ne standing) {
      standing = now
      active = if (now.active == null) null else new Judge(now.active)
      shadow = if (now.shadow == null) null else new Judge(now.shadow)
    }
    asked.pointTo(payload, payload.length)
    val told = if (active == null) Deciding.nothing(default) else active.decide(asked)
    packing.pack(both(asked, answer(columns(told, if (shadow == null) null else Deciding.json(shadow.decide(asked))))))
  }

  private def columns(told: Decision, shadowed: String): InternalRow = new GenericInternalRow(Array[Any](
    UTF8String.fromString(told.decision),
    new GenericArrayData(told.reasons.toArray.map(reason => UTF8String.fromString(reason.toString): Any)),
    told.score,
    UTF8String.fromString(told.rulesVersion),
    UTF8String.fromString(told.modelVersion),
    UTF8String.fromString(told.seen),
    UTF8String.fromString(shadowed)
  ))
}

object Deciding {
  private val json = new ObjectMapper

  def nothing(default: String): Decision = {
    val reasons = new java.util.ArrayList[String]
    reasons.add(Policy.NOTHING)
    new Decision(default, reasons, null, "", "", "")
  }

  /** As steps/policy.py tells it. */
  def json(told: Decision): String = {
    def words(value: Any): String = json.writeValueAsString(value)
    val score = if (told.score == null) "null" else Policy.rounded(told.score, 9)
    s"""{"decision":${words(told.decision)},"reasons":${words(told.reasons)},"score":$score,""" +
      s""""rules_version":${words(told.rulesVersion)},"model_version":${words(told.modelVersion)},"policy_seen":${words(told.seen)}}"""
  }
}
