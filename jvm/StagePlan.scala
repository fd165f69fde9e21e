/** A stage as a node of Spark's plan, built without the typed API.
  *
  * Through that API every row becomes an object by a lambda, is serialised for the shuffle, and becomes an object again.
  * Here the kernel gets Spark's own row, as it lies in memory, and gives rows of the same kind. */
package org.apache.spark.sql.headrace

import java.util.{List => JavaList, Map => JavaMap}

import org.apache.spark.sql.{Column, DataFrame, Encoders, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.UnresolvedDeserializer
import org.apache.spark.sql.catalyst.encoders.{encoderFor, ExpressionEncoder}
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeReference, BitwiseAnd, BitwiseOr, BoundReference, Cast, Expression, LeafExpression, Literal, NamedExpression, XxHash64}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, Project, SerializeFromObject, TransformWithState}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.streaming.{OutputMode, StatefulProcessor, TimeMode}
import org.apache.spark.sql.types._

import _root_.headrace.{Combine, Counters, Stage, StageKernel, StageSpec, StepSpec}

object StagePlan {
  private val ROW = ObjectType(classOf[InternalRow])

  def apply(chain: DataFrame, spec: StageSpec, conditions: JavaMap[Integer, JavaList[Column]]): DataFrame = {
    val frame = chain.asInstanceOf[Dataset[Row]]
    val session = frame.sparkSession
    val source = frame.queryExecution.analyzed
    val chained = if (Combine.helps(spec)) Combined(spec, source) else source
    val slotted = Project(chained.output :+ slotOf(chained.output), chained)
    val child = Placed(slotted.output.last, slotted.output(Stage.KEY), spec.inPlace, slotted)
    val bound = spec.copy(steps = spec.steps.map(step => step.copy(conditions = conditionsOf(session, step, conditions.get(step.ordinal)))))
    val kernel = new StageKernel(bound, Counters.open(session.sparkContext), spec.steps.map(_ => Counters.site()))
    val keys = Seq(child.output.last, child.output(Stage.KEY))
    val keyEncoder = encoderFor(Encoders.tuple(Encoders.scalaLong, Encoders.BINARY))
    val keyObject = UnresolvedDeserializer(keyEncoder.deserializer, keys)
    val transformed = new TransformWithState(
      keyObject,
      WholeRow(),
      keys,
      child.output,
      kernel.asInstanceOf[StatefulProcessor[Any, Any, Any]],
      if (spec.byClock) TimeMode.ProcessingTime() else TimeMode.EventTime(),
      OutputMode.Update(),
      keyEncoder.asInstanceOf[ExpressionEncoder[Any]],
      AttributeReference("obj", ROW, nullable = false)(),
      child,
      hasInitialState = false,
      initialStateGroupingAttrs = keys, // what follows is not looked at without an initial state
      initialStateDataAttrs = child.output,
      initialStateDeserializer = keyObject,
      initialState = LocalRelation(toAttributes(keyEncoder.schema))
    )
    Dataset.ofRows(session, SerializeFromObject(chained.schema.indices.map(columnOf(chained.schema, _)), transformed))
  }

  /** The key's hash with the step in its low bits. Spark groups by sorting, and compares the first eight bytes of what it
    * sorts by: with a step in front they would all be equal, with a hash hardly ever. The hash alone is a key's place. */
  private def slotOf(chain: Seq[Attribute]): Alias = {
    val hash = BitwiseAnd(new XxHash64(Seq(chain(Stage.KEY))), Literal(Stage.PLACE))
    Alias(BitwiseOr(hash, Cast(chain(Stage.STEP), LongType)), "slot")()
  }

  /** A column of the rows that the kernel gives. */
  private def columnOf(schema: StructType, at: Int): NamedExpression = {
    val row = BoundReference(0, ROW, nullable = false)
    def get(method: String, nullable: Boolean): Expression =
      Invoke(row, method, schema(at).dataType, Seq(Literal(at)), returnNullable = nullable)
    val value = schema(at).dataType match {
      case IntegerType => get("getInt", nullable = false)
      case LongType => get("getLong", nullable = false)
      case BinaryType => get("getBinary", nullable = true)
    }
    Alias(value, schema(at).name)()
  }

  /** A step's conditions (null: none), ready to be asked of a row of the columns they are over. */
  private def conditionsOf(session: SparkSession, step: StepSpec, conditions: JavaList[Column]): Array[Expression] =
    if (conditions == null) Array.empty
    else Array.tabulate(conditions.size) { i =>
      BoundColumns(session, step.schemaOf(i), conditions.subList(i, i + 1)).head
    }
}

/** The row itself, not a copy: valid until the next one is asked for. */
case class WholeRow() extends LeafExpression {
  override def dataType: DataType = ObjectType(classOf[InternalRow])
  override def nullable: Boolean = false
  override def eval(row: InternalRow): Any = row

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    ev.copy(code = code"${classOf[InternalRow].getName} ${ev.value} = ${ctx.INPUT_ROW};", isNull = FalseLiteral)
}
