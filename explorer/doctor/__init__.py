"""Finds what is wrong with a draft: examines the drafter on texts with known answers and tells the causes of
low acceptance apart. The page and the command `doctor` show the result.
"""
