"""Scenes: marks, layouts, the registry of views, and what views share.

A view writes `scene.Cell(...)` for a mark, since the events of a trace have classes `Cell` and `Step` too.
"""

from visualizers.scene.marks import Arc as Arc
from visualizers.scene.marks import Band as Band
from visualizers.scene.marks import Bar as Bar
from visualizers.scene.marks import Cell as Cell
from visualizers.scene.marks import Change as Change
from visualizers.scene.marks import Chip as Chip
from visualizers.scene.marks import Edge as Edge
from visualizers.scene.marks import Front as Front
from visualizers.scene.marks import Guide as Guide
from visualizers.scene.marks import Hook as Hook
from visualizers.scene.marks import Label as Label
from visualizers.scene.marks import Mark as Mark
from visualizers.scene.marks import Moment as Moment
from visualizers.scene.marks import Node as Node
from visualizers.scene.marks import Op as Op
from visualizers.scene.marks import Panel as Panel
from visualizers.scene.marks import Path as Path
from visualizers.scene.marks import Row as Row
from visualizers.scene.marks import Say as Say
from visualizers.scene.marks import Stem as Stem
from visualizers.scene.marks import Step as Step
from visualizers.scene.marks import Symbol as Symbol
from visualizers.scene.marks import Tick as Tick
