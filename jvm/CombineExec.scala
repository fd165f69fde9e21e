/** Combine as a node of Spark's plan. In the code that Spark generates, a row that is put together is never written: its
  * columns go to Combining as they are computed. Without such code it takes Spark's rows as they lie in memory. */
package org.apache.spark.sql.headrace

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeSet, BindReferences, Expression, NamedExpression, UnsafeProjection}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode, FalseLiteral, JavaCode}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, UnaryNode}
import org.apache.spark.sql.execution.{CodegenSupport, SparkPlan, SparkStrategy, UnaryExecNode}

import _root_.headrace.{Combinations, Combining, Stage, StageSpec}

/** The chain with rows put together where they may be. */
case class Combined(spec: StageSpec, child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override lazy val references: AttributeSet = child.outputSet // it reads rows by place: no column may be left out
  override protected def stringArgs: Iterator[Any] = Iterator(child)
  override protected def withNewChildInternal(newChild: LogicalPlan): Combined = copy(child = newChild)
}

/** The projection that makes the chain is Combine's own part: from what a column is made of it sees how to read it. */
object CombineStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case Combined(spec, Project(columns, child)) => CombineExec(spec, columns, planLater(child)) :: Nil
    case Combined(spec, child) => CombineExec(spec, child.output, planLater(child)) :: Nil
    case _ => Nil
  }
}

/** `columns`: the chain's, made of the child's. */
case class CombineExec(spec: StageSpec, columns: Seq[NamedExpression], child: SparkPlan)
    extends UnaryExecNode with CodegenSupport {
  override def output: Seq[Attribute] = columns.map(_.toAttribute)
  override protected def stringArgs: Iterator[Any] = Iterator(columns, child)

  override protected def doExecute(): RDD[InternalRow] = {
    val (stage, made, below) = (spec, columns, child.output) // not the whole node along to the tasks
    child.execute().mapPartitionsWithIndexInternal { (partition, rows) =>
      val chain = UnsafeProjection.create(made, below)
      chain.initialize(partition)
      new Combinations(stage, rows.map(chain(_)))
    }
  }

  override def inputRDDs(): Seq[RDD[InternalRow]] = child.asInstanceOf[CodegenSupport].inputRDDs()

  // Of the code that is being generated: the task's Combining, and the two functions below.
  private var combining, emit, leave: String = _

  /** Spark takes rows one by one: after each this returns, and begins anew when the next one is asked for. */
  override protected def doProduce(ctx: CodegenContext): String = {
    val kind = classOf[Combining].getName
    val stage = ctx.addReferenceObj("stage", spec)
    combining = ctx.addMutableState(kind, "combining", v => s"$v = new $kind($stage);", forceInline = true)
    emit = emitted(ctx)
    leave = left(ctx)
    s"""$leave();
      if (shouldStop()) return;
      ${child.asInstanceOf[CodegenSupport].produce(ctx, this)}
      $combining.end();
      $leave();"""
  }

  /** The one place where rows go on, those that were put together and the others. */
  private def emitted(ctx: CodegenContext): String = {
    val name = ctx.freshName("emit")
    val values = output.map(column => ctx.freshVariable(column.name, column.dataType))
    val parameters = values.map(value => s"${value.javaType.getSimpleName} $value")
    val told = values.map { value =>
      ExprCode(if (value.javaType.isPrimitive) FalseLiteral else JavaCode.isNullExpression(s"($value == null)"), value)
    }
    ctx.addNewFunction(name, s"""private void $name(${parameters.mkString(", ")}) throws java.io.IOException {
      ${consume(ctx, told)}
    }""")
  }

  private def left(ctx: CodegenContext): String = {
    val (name, row) = (ctx.freshName("leave"), ctx.freshName("together"))
    val values = output.indices.map(i => CodeGenerator.getValue(row, output(i).dataType, i.toString))
    ctx.addNewFunction(name, s"""private void $name() throws java.io.IOException {
      while ($combining.leaves() && !shouldStop()) {
        InternalRow $row = $combining.next();
        $emit(${values.mkString(", ")});
      }
    }""")
  }

  /** Every column is computed once, whether the row is put together or goes on. */
  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String = {
    val bound = BindReferences.bindReferences[Expression](columns, child.output).map {
      case Alias(made, _) => made
      case same => same
    }
    val shared = ctx.subexpressionEliminationForWholeStageCodegen(bound)
    val made = ctx.withSubExprEliminationExprs(shared.states) {
      bound.zipWithIndex.map {
        case (key, Stage.KEY) => InPlace.text(ctx, key)
        case (payload, Stage.PAYLOAD) => InPlace.row(ctx, payload)
        case (other, _) => other.genCode(ctx)
      }
    }
    val id = made(Stage.ID)
    val values = made.map(_.value.toString).updated(Stage.ID, s"(${id.isNull} ? null : ${id.value})")
    val bytes = Seq(Stage.KEY, Stage.PAYLOAD).foldLeft(values) { (all, at) =>
      all.updated(at, s"(${all(at)} == null ? null : ${all(at)}.getBytes())")
    }
    s"""${evaluateVariables(shared.exprCodesNeedEvaluate)}
      ${ctx.evaluateSubExprEliminationState(shared.states.values)}
      ${evaluateVariables(made)}
      if (!$combining.take(${values.patch(Stage.PORT, Nil, 1).mkString(", ")})) {
        $emit(${bytes.mkString(", ")});
      } else if ($combining.leaves()) {
        $leave();
      }"""
  }

  override protected def withNewChildInternal(newChild: SparkPlan): CombineExec = copy(child = newChild)
}
