/** The chain's expressions as Python reaches them. */
package headrace

import org.apache.spark.sql.Column
import org.apache.spark.sql.headrace.{ChainColumns, Counted, Lookup}

object Chain {
  /** A struct's columns as one binary. */
  def pack(struct: Column): Column = ChainColumns.pack(struct)

  /** A packed binary as a struct of this DDL. */
  def unpack(bytes: Column, ddl: String): Column = ChainColumns.unpack(bytes, ddl)

  /** A struct as the JSON object of rule F1. */
  def encode(struct: Column): Column = ChainColumns.encode(struct)

  /** A struct's columns as a record key of rule F1. */
  def keyText(struct: Column): Column = ChainColumns.keyText(struct)

  /** The stable id (rule D2) of rows given as struct of (key, src, part, off, id); `named` is the JSON array
    * [app, version, step, [topics by source]]. */
  def stableId(row: Column, named: String): Column = ChainColumns.stableId(row, named)

  /** What a static table has for a key text, as a struct; `table` as in Lookup. */
  def lookup(key: Column, table: String): Column = Lookup(key, table)

  /** A packed row of the columns `row`, and behind them `said`, what the policy that stands at this place says of it. */
  def decide(payload: Column, place: String, default: String, row: String, said: String): Column =
    ChainColumns.decide(payload, place, default, row, said)

  /** The same condition, counting rows under these terms of rule D3 where it is true and where it is not ("": not). */
  def counted(condition: Column, step: Int, yes: String, no: String): Column = Counted(condition, step, yes, no)
}
