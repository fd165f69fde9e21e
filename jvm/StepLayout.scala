/** A window, dedup or changed of a stage, and where its columns stand in the payloads of its rows. */
package headrace

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import headrace.steps.{Kind => ValueKind, State, Step}

final class StepLayout(stage: StageSpec, spec: StepSpec) {
  private val node: JsonNode = StageSpec.json.readTree(spec.spec)
  private val aggregates = Option(node.get("aggregates")).map(_.size).getOrElse(0)

  val columns: Int = spec.input.length

  /** Whether its one aggregate is of rows: a result tells them one by one. */
  val ranked: Boolean = aggregates == 1 && node.get("aggregates").get(0).get("kind").asText == "top_rows"

  /** The payload of a window: its key's columns, the arguments of its aggregates, and for late rows all columns.
    * `places`: of each aggregate's argument (-1: none); `arguments`: where they end. */
  val (places, arguments) = {
    var next = spec.keys
    val found = Array.tabulate(aggregates) { i =>
      if (node.get("aggregates").get(i).get("of").asText.isEmpty) -1 else { next += 1; next - 1 }
    }
    if (ranked) next += 1 // the row after what it is ranked by
    (found, next)
  }

  /** One text column as key is the key itself; others are kept in the state, since results tell them. */
  val keyKept: Boolean = spec.keys > 1 || (spec.keys == 1 && spec.input(0).kind != TextKind)

  /** Columns that `changed` looks at. */
  private lazy val compared: Set[Int] = Option(node.get("values")).toSet[JsonNode].flatMap(_.elements.asScala.map(_.asInt))

  val keyKinds: Array[ValueKind] = Array.tabulate(spec.keys)(kindAt)

  val step: Step[State] = Step.of(
    node,
    places,
    Array.tabulate(columns)(i => if ((i >= spec.keys && i < arguments) || compared(i)) kindAt(i) else null),
    if (ranked) Array(ValueKind.of("array<binary>")) else spec.output.takeRight(aggregates).map(field => ValueKind.of(field.kind.spark)),
    stage.topics
  )

  private def kindAt(column: Int): ValueKind = ValueKind.of(spec.input(column).kind.spark)
}
